//! The command line of YCSB: `{load|run|shell} STORE [options]`, as accepted by `bin/ycsb` and `site.ycsb.Client`.

use loadstone_wire::error::EngineError;
use loadstone_wire::suggest::{did_you_mean, hint_near};

use super::bindings;

/// The first word of a command line.
const PHASES: &[&str] = &["load", "run", "shell"];

/// The options, for suggestions.
const OPTIONS: &[&str] =
    &["-P", "-p", "-threads", "-target", "-s", "-l", "-db", "-cp", "-jvm-args", "-strict", "-print-spec"];

/// The action that a command line requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Insert the records.
    Load,
    /// Run the workload.
    Run,
    /// Run operations interactively.
    Shell,
}

/// A command line, parsed but not yet interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// The action.
    pub command: Command,
    /// The store, under Loadstone's name or YCSB's name.
    pub store: String,
    /// Files given with `-P`, in order. Later files override earlier files.
    pub files: Vec<String>,
    /// Properties set by `-p` and its short forms, in order. Later properties override earlier ones, and all of them
    /// override the files.
    pub properties: Vec<(String, String)>,
    /// `-cp`: the class path of stores in a JVM.
    pub class_path: Option<String>,
    /// `-jvm-args`: options of the JVM.
    pub jvm_options: Option<String>,
    /// `--print-spec`: print the TrialSpec without running it.
    pub print_spec: bool,
    /// `-strict`: an unknown property is an error, and a rate that was not held is a failure.
    pub strict: bool,
}

/// The usage, which is printed by `--help` and after incorrect usage.
pub const USAGE: &str = "\
usage: loadstone ycsb {load|run|shell} STORE [options]

  -P FILE           properties from a file; later files override earlier files
  -p NAME=VALUE     one property; overrides every file
  -threads N        clients (threadcount)
  -target N         operations per second over all clients (target)
  -s                print the status every status.interval seconds
  -l LABEL          put LABEL before each status line
  -db CLASS         a binding by its class; as in YCSB, it replaces STORE
  -cp PATH          class path (for stores in a JVM)
  -jvm-args ARGS    arguments of that JVM
  -strict           refuse unknown properties; exit with 1 if the target rate was not held
  --print-spec      print what would be run, as JSON, and stop
  --search LOAD     find how many clients, or which rate, the store sustains (clients or rate; needs the lab:
                    `loadstone ycsb run STORE --search clients --help` shows its options)
";

impl Args {
    /// Parses the arguments after `ycsb`.
    pub fn parse(args: &[String]) -> Result<Self, EngineError> {
        let usage = |message: String| EngineError::usage(message).hint("see loadstone ycsb --help for the options");
        let mut arguments = args.iter();
        let command = match arguments.next().map(String::as_str) {
            Some("load") => Command::Load,
            Some("run") => Command::Run,
            Some("shell") => Command::Shell,
            Some(other) => {
                let error = usage(format!("ycsb takes load, run or shell, got \"{other}\""));
                return Err(match correct_line(args) {
                    Some(line) => error.hint(line),
                    None => error,
                });
            }
            None => return Err(usage("ycsb takes load, run or shell".to_owned())),
        };
        let mut parsed = Self {
            command,
            store: String::new(),
            files: Vec::new(),
            properties: Vec::new(),
            class_path: None,
            jvm_options: None,
            print_spec: false,
            strict: false,
        };
        while let Some(arg) = arguments.next() {
            let mut value = || arguments.next().cloned().ok_or_else(|| usage(format!("{arg} needs a value")));
            let mut set = |name: &str, value: String| parsed.properties.push((name.to_owned(), value));
            match arg.as_str() {
                "-P" => parsed.files.push(value()?),
                "-p" => {
                    let pair = value()?;
                    let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
                        return Err(usage(format!("-p needs NAME=VALUE, got \"{pair}\"")));
                    };
                    set(name, value.to_owned());
                }
                "-threads" => set("threadcount", value()?),
                "-target" => set("target", value()?),
                "-s" => set("status", "true".to_owned()),
                "-l" => set("label", value()?),
                "-db" => set("db", value()?),
                // bin/ycsb itself appends one of these options, so the user's option has no effect.
                "-load" | "-t" => {}
                "-cp" => parsed.class_path = Some(value()?),
                "-jvm-args" => parsed.jvm_options = Some(value()?),
                "-strict" | "--strict" => parsed.strict = true,
                "-print-spec" | "--print-spec" => parsed.print_spec = true,
                "--threads" | "--target" => {
                    return Err(usage(format!("unknown option {arg}"))
                        .hint(format!("YCSB's options have one dash: {}", &arg[1..])));
                }
                option if option.starts_with('-') => {
                    let error = usage(format!("unknown option {option}"));
                    return Err(hint_near(error, option, OPTIONS.iter().copied()));
                }
                store if parsed.store.is_empty() => store.clone_into(&mut parsed.store),
                stray => return Err(usage(format!("unexpected argument \"{stray}\""))),
            }
        }
        if parsed.store.is_empty() {
            let verb = args[0].as_str();
            return Err(usage(format!("ycsb {verb} needs a store"))
                .hint(format!("loadstone ycsb {verb} rocksdb -p rocksdb.dir=DIRECTORY -P workloads/workloada")));
        }
        Ok(parsed)
    }

    /// The class of the last `-db`, or of `-p db=`. In a file, the property has no effect: bin/ycsb always adds the class
    /// of the store's name to the command line.
    pub fn class(&self) -> Option<&str> {
        let (_, class) = self.properties.iter().rev().find(|(name, _)| name.trim() == "db")?;
        Some(class.trim()).filter(|class| !class.is_empty())
    }
}

/// The command line for stderr, which often goes to logs: values of passwords are hidden.
pub fn redact_passwords(arguments: &[String]) -> String {
    let hidden = |argument: &String| match argument.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("passw") => format!("{name}=…"),
        // A URL may contain a password as a parameter.
        Some((name, url)) if url.to_ascii_lowercase().contains("passw") => {
            let hide = |part: &str| match part.split_once('=') {
                Some((name, _)) if name.to_ascii_lowercase().contains("passw") => format!("{name}=…"),
                _ => part.to_owned(),
            };
            format!("{name}={}", url.split('&').map(hide).collect::<Vec<_>>().join("&"))
        }
        _ => argument.clone(),
    };
    arguments.iter().map(hidden).collect::<Vec<_>>().join(" ")
}

/// The corrected command line if the phase is missing, misspelt or not the first argument.
fn correct_line(args: &[String]) -> Option<String> {
    let place = args.iter().position(|word| PHASES.contains(&word.as_str()));
    let near = did_you_mean(&args[0], PHASES.iter().copied());
    let (phase, skipped) = match (place, near) {
        (Some(place), _) => (args[place].as_str(), place),
        (None, Some(near)) => (near, 0),
        _ if bindings::resolve(&args[0]).is_ok() => ("run", usize::MAX),
        _ => return None,
    };
    let rest = args.iter().enumerate().filter(|(at, _)| *at != skipped).map(|(_, word)| word.clone());
    let line = redact_passwords(&rest.map(quote_word).collect::<Vec<_>>());
    let choice = if skipped == usize::MAX { " (or load, to insert the records)" } else { "" };
    Some(format!("loadstone ycsb {phase} {line}{choice}"))
}

/// An argument in the form in which a shell reads it back.
fn quote_word(word: String) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, EngineError> {
        Args::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    /// Parses command lines from reports that Loadstone must support, except for the name of the store.
    #[test]
    fn the_reports_command_lines_parse() {
        let lines = [
            "load rocksdb -P workloads/workloada -p table=usertable -p columnfamily=cf -p recordcount=1000000 \
             -p threadcount=4 -cp /etc/hbase/conf -s",
            "load rocksdb -P workloads/workloada  -p threads=10 -p table=usertable -p columnfamily=family \
             -p recordcount=10000 -s",
            "run rocksdb -P workloads/workloada -threads 10 -p operationcount=1000000 -p table=usertable \
             -p columnfamily=family -p measurementtype=timeseries -p timeseries.granularity=2000 -s",
            "run rocksdb -P workloads/workload_writeonly -threads 10 -p operationcount=100000 -p recordcount=10000 \
             -p table=usertable -p columnfamily=family -p measurementtype=raw \
             -p measurement.raw.output_file=./pointdata/run_output -p timeseries.granularity=2000 -s",
            "load hse -threads 96 -P workloads/workloada -p recordcount=200000 -p hse.mpool_name=ycsbData \
             -p hse.config_path=/opt/hse/config/native_ycsb_abcdf_load.yml",
        ];
        for line in lines {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        let args = parse(lines[0]).unwrap();
        assert_eq!((args.command, args.store.as_str()), (Command::Load, "rocksdb"));
        assert_eq!(args.class_path.as_deref(), Some("/etc/hbase/conf"));
        assert!(args.properties.contains(&("threadcount".to_owned(), "4".to_owned())));
        assert!(args.properties.contains(&("status".to_owned(), "true".to_owned())));
    }

    #[test]
    fn options_may_precede_the_store() {
        let args = parse("run -p a=b=c -threads 3 lmdb -load").unwrap();
        assert_eq!(args.store, "lmdb");
        assert_eq!(args.properties[0], ("a".to_owned(), "b=c".to_owned()));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (line, expected) in [
            ("", "load, run or shell"),
            ("lod rocksdb", "\"lod\""),
            ("load", "needs a store"),
            ("load rocksdb -P", "-P needs a value"),
            ("load rocksdb -p recordcount", "NAME=VALUE"),
            ("run rocksdb --threads 4", "unknown option --threads"),
            ("run rocksdb lmdb", "unexpected argument \"lmdb\""),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.message.contains(expected) && error.is_usage(), "{line}: {error}");
            assert!(error.hint.is_some());
        }
    }

    #[test]
    fn misplaced_phase_gets_a_corrected_line() {
        for (line, expected) in [
            ("rocksdb -P workloads/workloada", "run rocksdb -P workloads/workloada (or load, to insert the records)"),
            ("mongodb load -p a=*", "load mongodb -p 'a=*'"),
            ("-P w run redis -p redis.password=x", "run -P w redis -p redis.password=…"),
            ("lod rocksdb -s", "load rocksdb -s"),
            ("Rnu redis", "run redis"),
        ] {
            let hint = parse(line).unwrap_err().hint.unwrap();
            assert_eq!(hint, format!("loadstone ycsb {expected}"), "{line}");
        }
        assert_eq!(parse("unknown -s").unwrap_err().hint.unwrap(), "see loadstone ycsb --help for the options");
    }
}
