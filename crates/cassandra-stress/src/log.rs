//! The log: everything that is printed to standard output, and also written to the file of `-log file=`.

use std::fs::File;
use std::io::Write;

use loadstone_wire::error::EngineError;
use loadstone_wire::output::{print_err, print_out};

/// Writes to standard output and to the file of `-log file=`.
#[derive(Debug)]
pub struct Log {
    file: Option<(String, File)>,
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
        Ok(Self { file: file.transpose()?, step: keeps_steps.then(String::new) })
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
            print_err(&format!("warning: cannot write {path}: {error}\n"));
            self.file = None;
        }
    }
}
