//! The log: everything that is printed to standard output, and also written to the file of `-log file=`.

use std::fs::File;
use std::io::Write;

use loadstone_wire::error::EngineError;
use loadstone_wire::output::print_out;

/// Writes to standard output and to the file of `-log file=`.
#[derive(Debug)]
pub struct Log {
    file: Option<(String, File)>,
    /// The first error of writing the file.
    error: Option<EngineError>,
    /// The text of the current step, for `-graph`.
    pub step: Option<String>,
}

impl Log {
    pub fn open(path: Option<&str>, keeps_steps: bool) -> Result<Self, EngineError> {
        let file = path.map(|path| match File::create(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => Err(EngineError::usage(format!("cannot write {path}: {error}"))
                .hint("-log file= names a file in a writable directory")),
        });
        Ok(Self { file: file.transpose()?, error: None, step: keeps_steps.then(String::new) })
    }

    /// Stores text for `-graph` without printing it.
    pub fn append_text(&mut self, text: &str) {
        if let Some(step) = &mut self.step {
            step.push_str(text);
        }
    }

    /// Prints text to standard output and to the file, and stores it for `-graph`.
    pub fn print_text(&mut self, text: &str) {
        print_out(text);
        self.append_text(text);
        if let Some((path, file)) = &mut self.file
            && let Err(error) = file.write_all(text.as_bytes())
        {
            let error = EngineError::failed(format!("cannot write {path}: {error}"));
            self.error = Some(error.hint("the log is incomplete; free space and run again"));
            self.file = None;
        }
    }

    /// Returns the first write error, if there was one.
    pub fn finish_file(self) -> Result<(), EngineError> {
        self.error.map_or(Ok(()), Err)
    }
}
