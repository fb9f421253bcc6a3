//! The command lines of TeraGen, TeraSort and TeraValidate, with Hadoop's options and Loadstone's options.

use std::collections::BTreeMap;

use loadstone_storage::sort::job::{Job, MEMORY_MIN};

use loadstone_measure::usage;
use loadstone_wire::error::EngineError;
use loadstone_wire::suggest::hint_near;

loadstone_load::named_variants! {
    /// One of the three commands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Command {
        /// `teragen ROWS OUT`.
        Gen = "teragen",
        /// `terasort IN OUT`.
        Sort = "terasort",
        /// `teravalidate OUT [REPORT]`.
        Validate = "teravalidate",
    }
}

impl Command {
    /// The usage, which `--help` prints.
    pub fn usage(self) -> String {
        let (arguments, about) = match self {
            Self::Gen => {
                ("ROWS OUT", "writes rows of 100 bytes into the new directory OUT; ROWS may end in k, m, b (10^9) or t")
            }
            Self::Sort => ("IN OUT", "sorts the files of the directory IN into the new directory OUT"),
            Self::Validate => (
                "OUT [REPORT]",
                "checks that the files of OUT are sorted; writes the new directory REPORT if it is given",
            ),
        };
        format!(
            "usage: loadstone {name} [options] {arguments}\n\n{about}\n\n  \
             --memory BYTES  memory to use (512MiB, 2GB …; default: half of what is free)\n  \
             --parts N       files to write (default: one for each processor)\n  \
             --threads N     threads that compute (default: one for each processor)\n  \
             --direct        bypass the page cache for local files (O_DIRECT); the output of terasort always does\n  \
             --disk          also measure the speed of the disk itself\n  \
             -D NAME=VALUE   a Hadoop property: mapreduce.job.maps, mapreduce.job.reduces, dfs.replication,\n                  \
             mapreduce.terasort.output.replication; dfs.* and fs.* go to the HDFS client\n  \
             --verify        compare each row of the input of terasort with the row that TeraGen generates\n  \
             --run-copies N  copies of the runs of an external sort on HDFS (default: 1)\n  \
             --print-spec    print the spec of each stage as one line of JSON, and exit\n\n\
             Directories are local or hdfs://HOST:PORT/….\n",
            name = self.name()
        )
    }
}

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// The command.
    pub command: Command,
    /// The job.
    pub job: Job,
    /// Whether `--disk` was set.
    pub disk: bool,
    /// Whether `--print-spec` was set.
    pub print_spec: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// All options that Loadstone adds.
const OPTIONS: &[&str] =
    &["--memory", "--parts", "--threads", "--direct", "--verify", "--disk", "--run-copies", "--print-spec"];

/// Hadoop properties that have no effect here, because there is no JVM with threads and memory to set, output is always
/// flushed, and splitters are always sampled.
const IDLE: &[&str] = &[
    "io.file.buffer.size",
    "mapreduce.framework.name",
    "mapreduce.local.map.tasks.maximum",
    "mapreduce.local.reduce.tasks.maximum",
    "mapreduce.task.io.sort.factor",
    "mapreduce.task.io.sort.mb",
    "mapreduce.terasort.final.sync",
    "mapreduce.terasort.num-rows",
    "mapreduce.terasort.num.partitions",
    "mapreduce.terasort.partitions.sample",
    "mapreduce.terasort.simplepartitioner",
    "mapreduce.terasort.use.terascheduler",
];
/// Prefixes of other properties that have no effect here.
const IDLE_PREFIXES: &[&str] = &["mapreduce.map.", "mapreduce.reduce.", "yarn."];

const MAPS: [&str; 2] = ["mapreduce.job.maps", "mapred.map.tasks"];
const REDUCES: [&str; 2] = ["mapreduce.job.reduces", "mapred.reduce.tasks"];
const BLOCK: &str = "dfs.blocksize";
const REPLICATION: &str = "dfs.replication";
const SORT_REPLICATION: &str = "mapreduce.terasort.output.replication";

impl Args {
    /// Parses the arguments after the command.
    pub fn parse(command: Command, arguments: &[String]) -> Result<Self, EngineError> {
        let usage = |message: String| {
            EngineError::usage(message).hint(format!("loadstone {} --help shows the options", command.name()))
        };
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let (mut places, mut properties) = (Vec::new(), BTreeMap::new());
        let (mut memory, mut parts, mut threads) = (None, None, processors);
        let (mut direct, mut verify, mut disk, mut print_spec, mut run_copies) = (false, false, false, false, 1);
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let mut value = || {
                attached
                    .clone()
                    .or_else(|| arguments.next().cloned())
                    .ok_or_else(|| usage(format!("{word} needs a value")))
            };
            match name {
                "--memory" => memory = Some(bytes("--memory", &value()?)?),
                "--parts" => parts = Some(number("--parts", &value()?)?),
                "--threads" => threads = number("--threads", &value()?)?,
                "--run-copies" => run_copies = copies("--run-copies", number("--run-copies", &value()?)?)?,
                "--direct" => direct = true,
                "--verify" => verify = true,
                "--disk" => disk = true,
                "--print-spec" => print_spec = true,
                property if property.starts_with("-D") => {
                    let pair = if property == "-D" { value()? } else { word[2..].to_owned() };
                    let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
                        return Err(usage(format!("-D needs NAME=VALUE, got \"{pair}\"")));
                    };
                    properties.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                option if option.starts_with('-') && option.len() > 1 => {
                    let error = usage(format!("unknown option {option}"));
                    return Err(hint_near(error, option, OPTIONS.iter().copied()));
                }
                place => places.push(place.to_owned()),
            }
        }
        if verify && command != Command::Sort {
            return Err(usage("--verify is an option of terasort".to_owned()));
        }
        let mut settings = Settings { command, properties, warnings: Vec::new() };
        let job = Job {
            memory_bytes: memory.unwrap_or_else(|| (usage::memory_free() / 2).max(MEMORY_MIN)),
            threads,
            parts: settings.parts()?.or(parts).unwrap_or(processors),
            replication: settings.replication()?,
            run_replication: run_copies,
            block_bytes: settings.properties.remove(BLOCK).map(|value| bytes(BLOCK, &value)).transpose()?,
            properties: settings.take_hdfs_options(),
            direct,
            verify,
            ..Job::default()
        };
        settings.check_remaining();
        let mut parsed = Self { command, job, disk, print_spec, warnings: settings.warnings };
        parsed.accept_places(places).map_err(usage)?;
        parsed.job.check()?;
        Ok(parsed)
    }

    fn accept_places(&mut self, places: Vec<String>) -> Result<(), String> {
        let count = places.len();
        let mut places = places.into_iter();
        let mut next = || places.next();
        let job = &mut self.job;
        let expected = match self.command {
            Command::Gen => {
                job.rows = rows(&next().unwrap_or_default())?;
                job.output = next();
                2..=2
            }
            Command::Sort => {
                (job.input, job.output) = (next(), next());
                2..=2
            }
            Command::Validate => {
                (job.input, job.output) = (next(), next());
                1..=2
            }
        };
        if expected.contains(&count) {
            return Ok(());
        }
        let arguments = match self.command {
            Command::Gen => "ROWS and OUT",
            Command::Sort => "IN and OUT",
            Command::Validate => "OUT, and optionally REPORT",
        };
        Err(format!("{} takes {arguments}, got {count} arguments", self.command.name()))
    }
}

/// The settings in Hadoop's properties.
struct Settings {
    command: Command,
    properties: BTreeMap<String, String>,
    warnings: Vec<String>,
}

impl Settings {
    fn parts(&mut self) -> Result<Option<u64>, EngineError> {
        let (counts, idle) = match self.command {
            Command::Gen => (MAPS, REDUCES),
            Command::Sort => (REDUCES, MAPS),
            // TeraValidate reads existing files and writes one report.
            Command::Validate => (["", ""], MAPS),
        };
        for name in idle.iter().chain(&REDUCES).filter(|name| !counts.contains(name)) {
            self.properties.remove(*name);
        }
        let mut parts = None;
        for name in counts {
            if let Some(value) = self.properties.remove(name) {
                parts = parts.or(Some(number(name, &value)?));
            }
        }
        Ok(parts)
    }

    fn replication(&mut self) -> Result<Option<u16>, EngineError> {
        let own = self.properties.remove(SORT_REPLICATION);
        let general = self.properties.remove(REPLICATION);
        // TeraSort keeps one copy of its output unless a property sets the number of copies. dfs.replication has no
        // effect on this (TeraSort.getOutputReplication).
        let (name, value) = match self.command {
            Command::Sort => (SORT_REPLICATION, Some(own.unwrap_or_else(|| "1".to_owned()))),
            _ => (REPLICATION, general),
        };
        value.map(|value| copies(name, number(name, &value)?)).transpose()
    }

    /// Takes the options for the HDFS client.
    fn take_hdfs_options(&mut self) -> BTreeMap<String, String> {
        let all = std::mem::take(&mut self.properties);
        let (own, remaining) =
            all.into_iter().partition(|(name, _)| name.starts_with("dfs.") || name.starts_with("fs."));
        self.properties = remaining;
        own
    }

    fn check_remaining(&mut self) {
        for name in self.properties.keys() {
            let idle = IDLE.contains(&name.as_str()) || IDLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            if !idle {
                self.warnings.push(format!("-D{name} is not known here and has no effect"));
            }
        }
    }
}

fn number(name: &str, value: &str) -> Result<u64, EngineError> {
    value.parse().map_err(|_| {
        EngineError::usage(format!("{name} must be a whole number, got \"{value}\""))
            .hint(format!("for example {name}=4"))
    })
}

/// Parses a number of copies.
fn copies(name: &str, number: u64) -> Result<u16, EngineError> {
    u16::try_from(number).ok().filter(|&copies| copies > 0).ok_or_else(|| {
        EngineError::usage(format!("{name} must be 1 to 65535, got {number}"))
            .hint("use no more copies than there are data nodes")
    })
}

/// Parses a number of rows in TeraGen's syntax: digits, optionally followed by k, m, b or t (`TeraGen.parseHumanLong`).
fn rows(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.chars().last() {
        Some('t') => (&text[..text.len() - 1], 1_000_000_000_000),
        Some('b') => (&text[..text.len() - 1], 1_000_000_000),
        Some('m') => (&text[..text.len() - 1], 1_000_000),
        Some('k') => (&text[..text.len() - 1], 1_000),
        _ => (text, 1),
    };
    digits
        .parse()
        .ok()
        .and_then(|count: u64| count.checked_mul(factor))
        // Hadoop calculates the first row of each part in double precision, and so does this engine.
        .filter(|&rows| rows <= 1 << 52)
        .ok_or_else(|| format!("ROWS must be a whole number, optionally followed by k, m, b or t, got \"{text}\""))
}

/// Parses a number of bytes: `1500000`, `64MiB`, `2GB` or `2g` (a single letter is a power of 1024, as in Hadoop and
/// Java).
fn bytes(name: &str, text: &str) -> Result<u64, EngineError> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1u64),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "t" | "tib" => Some(1 << 40),
        _ => None,
    };
    let number = text[..digits].parse::<f64>().ok();
    number.zip(factor).map(|(number, factor)| (number * factor as f64) as u64).ok_or_else(|| {
        EngineError::usage(format!("{name} must be a number of bytes, got \"{text}\""))
            .hint("for example 2GB or 512MiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(command: Command, line: &str) -> Result<Args, EngineError> {
        Args::parse(command, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn hadoops_command_lines_are_understood() {
        let args = parse(Command::Gen, "-Dmapreduce.job.maps=7 -D dfs.replication=3 10k hdfs://nn:8020/in").unwrap();
        assert_eq!((args.job.rows, args.job.parts, args.job.replication), (10_000, 7, Some(3)));
        assert_eq!(args.job.output.as_deref(), Some("hdfs://nn:8020/in"));
        let line =
            "-Dmapred.reduce.tasks=5 -Dmapreduce.job.maps=9 -Dmapreduce.map.memory.mb=512 -Ddfs.replication=3 in out";
        let args = parse(Command::Sort, line).unwrap();
        assert_eq!((args.job.parts, args.job.replication), (5, Some(1)), "as TeraSort does");
        assert_eq!((args.job.input.as_deref(), args.warnings.len()), (Some("in"), 0));
        let args = parse(Command::Sort, "-Dmapreduce.terasort.output.replication=2 -Dmy.key=1 in out").unwrap();
        assert_eq!((args.job.replication, args.warnings.len()), (Some(2), 1));
        let args = parse(Command::Sort, "in out --run-copies 2").unwrap();
        assert_eq!((args.job.replication, args.job.run_replication), (Some(1), 2));
        let args = parse(Command::Validate, "-Dmapreduce.job.reduces=4 out --memory=64MiB").unwrap();
        assert_eq!((args.job.memory_bytes, args.job.output), (64 << 20, None));
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (command, line, expected) in [
            (Command::Gen, "ten out", "\"ten\""),
            (Command::Gen, "10", "ROWS and OUT"),
            (Command::Gen, "", "\"\""),
            (Command::Gen, "9999999999t out", "whole number"),
            (Command::Sort, "in", "got 1"),
            (Command::Sort, "in out more", "got 3"),
            (Command::Sort, "in out --memory 1", "memory must be at least"),
            (Command::Sort, "in out --memory much", "\"much\""),
            (Command::Sort, "in out --parts 0", "parts must be"),
            (Command::Sort, "in out --part 2", "--part"),
            (Command::Sort, "-Dmapreduce.job.reduces=x in out", "mapreduce.job.reduces"),
            (Command::Sort, "-D in out", "NAME=VALUE"),
            (Command::Sort, "in out --run-copies 70000", "--run-copies must be 1 to 65535"),
            (Command::Validate, "", "got 0"),
            (Command::Validate, "out --verify", "an option of terasort"),
        ] {
            let error = parse(command, line).unwrap_err();
            assert!(error.message.contains(expected) && error.is_usage(), "{line}: {error}");
            assert!(error.hint.is_some(), "{line}");
        }
    }
}
