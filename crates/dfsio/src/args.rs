//! The command line of TestDFSIO, with Loadstone's additions.

use std::collections::BTreeMap;

use loadstone_storage::codec::Codec;
use loadstone_storage::file_operations::{Access, Action, Sync};

use loadstone_wire::error::EngineError;
use loadstone_wire::suggest::hint_near;

pub const USAGE: &str = "\
usage: loadstone-engine dfsio TEST [OPTION …] URI

  URI                        file:///DIRECTORY or hdfs://HOST:PORT/DIRECTORY; files are in DIRECTORY/io_data
                             (a URI without a directory: test.build.data, default /benchmarks/TestDFSIO)
TEST, as in Hadoop's TestDFSIO:
  -write                     write files; the contents of io_data are deleted first
  -read [-random | -backward | -skip [-skipSize SIZE]]
  -append                    append to files
  -truncate                  truncate files to -fileSize
  -clean                     delete everything that TestDFSIO creates in DIRECTORY, and DIRECTORY if it is then empty
OPTION, as in Hadoop:
  -nrFiles N                 files (1)
  -fileSize SIZE, -size SIZE size of a file, in B, KB, MB, GB or TB; without a unit: MB (1MB)
  -bufferSize BYTES          bytes written or read at once (1000000)
  -compression CODEC         GzipCodec, DefaultCodec or DeflateCodec: for -write, and for -read of such files
  -resFile FILE              append the results to FILE (TestDFSIO_results.log)
  -D NAME=VALUE              dfs.replication, dfs.blocksize, test.build.data, fs.defaultFS,
                             mapreduce.local.map.tasks.maximum (clients)
Loadstone's own:
  --clients N                files at a time (all files, at most 16)
  --executors N              threads that serve the clients of HDFS (one per four clients)
  --direct                   bypass the page cache (O_DIRECT); needs -bufferSize 1048576 or another multiple of 4096
  --io threads|uring         how local files are accessed (threads)
  --depth N                  with uring: buffers in flight for each file (8)
  --sync none|flush|close|buffer
                             when written data is synced: never (none), to the file system before the close (flush),
                             to the device before the close (close), or to the device after each buffer (buffer)
  --cold                     drop the pages of local files from the page cache first
  --compressible             write content that can be compressed to half its size (incompressible)
  --no-verify                do not compare the bytes read with the bytes written
  --seed N                   seed of random positions and of the content of files
  --print-spec               print the TrialSpec instead of running it
";

/// The test to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Test {
    /// Operate on files.
    Work(Action, Access),
    /// Delete all files.
    #[default]
    Clean,
}

impl Test {
    /// The name of the test in Hadoop's output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Work(Action::Write, _) => "write",
            Self::Work(Action::Append, _) => "append",
            Self::Work(Action::Truncate, _) => "truncate",
            Self::Work(Action::Read, Access::Sequential) => "read",
            Self::Work(Action::Read, Access::Random) => "random read",
            Self::Work(Action::Read, Access::Backward) => "backward read",
            Self::Work(Action::Read, Access::Skip) => "skip read",
            Self::Clean => "cleanup",
        }
    }
}

/// How local files are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Io {
    /// With blocking calls, from one thread per client.
    #[default]
    Threads,
    /// With io_uring.
    Uring,
}

/// The parsed command line.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args {
    pub test: Test,
    pub files: u64,
    pub file_bytes: u64,
    pub buffer_bytes: u64,
    /// `None` means the length of the buffer.
    pub skip_bytes: Option<u64>,
    pub compression: Option<Codec>,
    pub res_file: String,
    pub settings: BTreeMap<String, String>,
    pub uri: Option<String>,
    pub clients: Option<u64>,
    pub direct: bool,
    pub io: Io,
    pub depth: Option<u64>,
    pub executors: Option<u64>,
    pub sync: Sync,
    pub cold: bool,
    pub compressible: bool,
    pub verify: bool,
    pub seed: Option<u64>,
    pub print_spec: bool,
}

impl Args {
    /// Parses the arguments.
    #[expect(clippy::too_many_lines, reason = "one arm per option")]
    pub fn parse(arguments: &[String]) -> Result<Self, EngineError> {
        let (mut action, mut access) = (None::<Option<Action>>, Access::Sequential);
        let mut args = Self {
            files: 1,
            file_bytes: 1 << 20,
            buffer_bytes: 1_000_000,
            res_file: "TestDFSIO_results.log".to_owned(),
            verify: true,
            ..Self::default()
        };
        let mut arguments = arguments.iter();
        while let Some(arg) = arguments.next() {
            let mut value = || {
                arguments.next().ok_or_else(|| {
                    EngineError::usage(format!("{arg} needs a value")).hint("see loadstone-engine dfsio --help")
                })
            };
            let mut test = |new: Option<Action>| match action.replace(new) {
                Some(old) if old != new => {
                    Err(EngineError::usage(format!("{arg} cannot be combined with another test"))
                        .hint("use one of -write, -read, -append, -truncate and -clean"))
                }
                _ => Ok(()),
            };
            let mut order = |new: Access| {
                if access != Access::Sequential && access != new {
                    return Err(EngineError::usage(format!("{arg} cannot be combined with another order"))
                        .hint("use one of -random, -backward and -skip"));
                }
                access = new;
                Ok(())
            };
            // Case is ignored, as in Hadoop.
            match arg.to_lowercase().as_str() {
                "-write" => test(Some(Action::Write))?,
                "-read" => test(Some(Action::Read))?,
                "-append" => test(Some(Action::Append))?,
                "-truncate" => test(Some(Action::Truncate))?,
                "-clean" => test(None)?,
                "-random" => order(Access::Random)?,
                "-backward" => order(Access::Backward)?,
                "-skip" => order(Access::Skip)?,
                "-skipsize" => args.skip_bytes = Some(parse_size(arg, value()?)?),
                "-nrfiles" => args.files = parse_whole(arg, value()?)?,
                "-filesize" | "-size" => args.file_bytes = parse_size(arg, value()?)?,
                "-buffersize" => args.buffer_bytes = parse_whole(arg, value()?)?,
                "-resfile" => args.res_file.clone_from(value()?),
                "-compression" => {
                    let class = value()?;
                    args.compression = Some(Codec::from_class(class).ok_or_else(|| refuse_option(arg, class))?);
                }
                "-storagepolicy" | "-erasurecodepolicy" => return Err(refuse_option(arg, value()?)),
                "-seq" => {
                    return Err(EngineError::usage("-seq is not supported")
                        .hint("use --clients 1: one file after another, without MapReduce"));
                }
                "-d" => parse_setting(value()?, &mut args.settings)?,
                "--clients" => args.clients = Some(parse_whole(arg, value()?)?),
                "--direct" => args.direct = true,
                "--io" => {
                    args.io = match value()?.as_str() {
                        "threads" => Io::Threads,
                        "uring" => Io::Uring,
                        other => {
                            return Err(EngineError::usage(format!("--io must be threads or uring, got \"{other}\""))
                                .hint("leave --io out for threads"));
                        }
                    }
                }
                "--depth" => args.depth = Some(parse_whole(arg, value()?)?),
                "--executors" => args.executors = Some(parse_whole(arg, value()?)?),
                "--sync" => {
                    args.sync = match value()?.as_str() {
                        "none" => Sync::None,
                        "flush" => Sync::Flush,
                        "close" => Sync::Close,
                        "buffer" => Sync::Buffer,
                        other => {
                            let message = format!("--sync must be none, flush, close or buffer, got \"{other}\"");
                            return Err(EngineError::usage(message).hint("leave --sync out for none"));
                        }
                    }
                }
                "--cold" => args.cold = true,
                "--compressible" => args.compressible = true,
                "--no-verify" => args.verify = false,
                "--seed" => args.seed = Some(parse_whole(arg, value()?)?),
                "--print-spec" => args.print_spec = true,
                lower if lower.starts_with("-d") && arg.contains('=') => parse_setting(&arg[2..], &mut args.settings)?,
                lower if lower.starts_with('-') => return Err(refuse_unknown(arg)),
                _ if args.uri.is_some() => {
                    return Err(EngineError::usage(format!("unexpected argument \"{arg}\""))
                        .hint("give one URI: file:///DIRECTORY or hdfs://HOST:PORT/DIRECTORY"));
                }
                _ => args.uri = Some(arg.clone()),
            }
        }
        args.test = match action {
            None => {
                return Err(EngineError::usage("no test is given")
                    .hint("use one of -write, -read, -append, -truncate and -clean"));
            }
            Some(None) => Test::Clean,
            Some(Some(action)) => Test::Work(action, access),
        };
        args.check_access(access)?;
        Ok(args)
    }

    /// Refuses options that cannot be combined.
    fn check_access(&self, access: Access) -> Result<(), EngineError> {
        let reads = matches!(self.test, Test::Work(Action::Read, _));
        let random_write = matches!(self.test, Test::Work(Action::Write, Access::Random));
        if access != Access::Sequential && !reads && !random_write {
            return Err(EngineError::usage("-random, -backward and -skip are for -read").hint("add -read"));
        }
        if self.skip_bytes.is_some() && access != Access::Skip {
            return Err(EngineError::usage("-skipSize is for -skip").hint("add -skip, or leave -skipSize out"));
        }
        if self.depth.is_some() && self.io != Io::Uring {
            return Err(EngineError::usage("--depth is for --io uring").hint("add --io uring, or use more --clients"));
        }
        for (name, value) in [("--clients", self.clients), ("--depth", self.depth), ("--executors", self.executors)] {
            if value == Some(0) {
                return Err(EngineError::usage(format!("{name} must be at least 1, got 0")).hint("use 1 or more"));
            }
        }
        Ok(())
    }
}

/// The error for one of Hadoop's options that is not supported.
fn refuse_option(option: &str, value: &str) -> EngineError {
    let hint = match option.to_lowercase().as_str() {
        "-compression" => "use org.apache.hadoop.io.compress.GzipCodec or DefaultCodec".to_owned(),
        "-storagepolicy" => {
            format!("before the test, run hdfs storagepolicies -setStoragePolicy -path DIRECTORY -policy {value}")
        }
        _ => format!("before the test, run hdfs ec -setPolicy -path DIRECTORY -policy {value}"),
    };
    EngineError::usage(format!("{option} {value} is not supported")).hint(hint)
}

fn refuse_unknown(option: &str) -> EngineError {
    let error = EngineError::usage(format!("unknown option \"{option}\"")).hint("see loadstone-engine dfsio --help");
    let options = USAGE.split(|c: char| !c.is_ascii_alphabetic() && c != '-').filter(|text| text.starts_with('-'));
    hint_near(error, option, options)
}

fn parse_setting(text: &str, settings: &mut BTreeMap<String, String>) -> Result<(), EngineError> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(EngineError::usage(format!("-D needs NAME=VALUE, got \"{text}\"")).hint("use -D dfs.replication=2"));
    };
    settings.insert(name.trim().to_owned(), value.trim().to_owned());
    Ok(())
}

/// Parses a whole number.
pub fn parse_whole(name: &str, text: &str) -> Result<u64, EngineError> {
    text.parse().map_err(|_| {
        EngineError::usage(format!("{name} must be a whole number, got \"{text}\""))
            .hint(format!("for example, use {name} 4"))
    })
}

/// Parses a size as `parseSize` in TestDFSIO does: digits and a unit; the default unit is MB.
pub fn parse_size(name: &str, text: &str) -> Result<u64, EngineError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let shift = match text[digits..].to_uppercase().as_str() {
        "B" => Some(0),
        "KB" => Some(10),
        "" | "MB" => Some(20),
        "GB" => Some(30),
        "TB" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        EngineError::usage(format!("{name} must be a size, got \"{text}\""))
            .hint(format!("for example, use {name} 128MB"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Args, EngineError> {
        Args::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_are_parsed_as_by_hadoop() {
        let args =
            parse_line("-WRITE -nrfiles 4 -size 64 -bufferSize 4096 -Ddfs.replication=2 -D a=b hdfs://nn/x").unwrap();
        assert_eq!((args.test, args.files), (Test::Work(Action::Write, Access::Sequential), 4));
        assert_eq!((args.file_bytes, args.buffer_bytes), (64 << 20, 4_096));
        assert_eq!(args.settings["dfs.replication"], "2");
        assert_eq!((args.settings["a"].as_str(), args.uri.as_deref()), ("b", Some("hdfs://nn/x")));
        let args = parse_line("-read -skip -skipSize 3KB /x").unwrap();
        assert_eq!((args.test.name(), args.skip_bytes), ("skip read", Some(3_072)));
        let defaults = parse_line("-read").unwrap();
        assert_eq!((defaults.files, defaults.file_bytes, defaults.buffer_bytes), (1, 1 << 20, 1_000_000));
    }

    #[test]
    fn invalid_arguments_are_refused_with_a_hint() {
        for (line, expected) in [
            ("/x", "no test"),
            ("-write -read /x", "another test"),
            ("-read -random -skip /x", "another order"),
            ("-append -random /x", "for -read"),
            ("-read -skipSize 1 /x", "for -skip"),
            ("-write -fileSize 1XB /x", "must be a size"),
            ("-write -fileSize 99999999999TB /x", "must be a size"),
            ("-write -nrFiles many /x", "whole number"),
            ("-write -nrFiels 1 /x", "unknown option"),
            ("-write /x /y", "unexpected argument"),
            ("-write -compression org.X /x", "-compression org.X is not supported"),
            ("-write -storagePolicy HOT /x", "-storagePolicy HOT is not supported"),
            ("-write -erasureCodePolicy RS-3-2-1024k /x", "-erasureCodePolicy RS-3-2-1024k is not supported"),
            ("-write --sync always /x", "--sync"),
            ("-write --depth 4 /x", "--io uring"),
            ("-write --executors 0 hdfs://h/x", "must be at least 1"),
            ("-write -nrFiles", "needs a value"),
            ("-write -D x", "NAME=VALUE"),
        ] {
            let error = parse_line(line).unwrap_err();
            assert!(error.message.contains(expected) && error.is_usage() && error.hint.is_some(), "{line}: {error:?}");
        }
    }
}
