//! Tests with command lines recorded from the tool, with Loadstone's additions, and with random arguments.

use proptest::prelude::*;

use super::*;
use crate::output::render_settings;
use crate::settings::DelayPolicy;

fn parse_line(line: &str) -> Result<CommandLineRequest, UsageError> {
    parse(&line.split(' ').collect::<Vec<_>>())
}

/// A recorded command line with its exit status and output.
struct Record {
    line: &'static str,
    exit: u8,
    output: String,
}

fn records(text: &'static str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for row in text.lines().filter(|row| !row.starts_with('#')) {
        if let Some(line) = row.strip_prefix(">>> ") {
            records.push(Record { line, exit: 0, output: String::new() });
            continue;
        }
        let record = records.last_mut().unwrap();
        if let Some(exit) = row.strip_prefix("exit ") {
            record.exit = exit.parse().unwrap();
        } else {
            record.output.push_str(row);
            record.output.push('\n');
        }
    }
    records
}

fn sections(block: &str) -> Vec<String> {
    let mut section = "";
    block
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            if !line.starts_with(' ') {
                section = line;
            }
            format!("{section}|{}", line.trim())
        })
        .collect()
}

/// The settings block in the format of the fixture: the lines that differ from the block of the first record.
fn compact(block: &str, base: &str) -> String {
    let (base, block) = (sections(base), sections(block));
    let removed = base.iter().filter(|line| !block.contains(line)).map(|line| format!("-{line}\n"));
    let added = block.iter().filter(|line| !base.contains(line)).map(|line| format!("+{line}\n"));
    removed.chain(added).collect()
}

fn expand_help(text: &str, compat: Compat) -> String {
    let mut expanded = text.replace("{general help}\n", &help::render_general(compat));
    while let Some(start) = expanded.find("{help ") {
        let end = start + expanded[start..].find('}').unwrap();
        let name = expanded[start + 6..end].to_owned();
        let help = match parse_as(&["help", &name], compat) {
            Ok(CommandLineRequest::Print(text)) => text,
            other => panic!("{other:?}"),
        };
        expanded.replace_range(start..=end + 1, &help);
    }
    expanded
}

fn compare(text: &'static str, compat: Compat) -> usize {
    let records = records(text);
    let base = records[0].output.clone();
    for record in &records {
        let arguments: Vec<&str> = record.line.split(' ').collect();
        let (exit, output) = match parse_as(&arguments, compat) {
            Ok(CommandLineRequest::Run(settings)) => {
                let block = render_settings(&settings);
                (0, if record.line == records[0].line { block } else { compact(&block, &base) })
            }
            Ok(CommandLineRequest::Print(text)) => (0, text),
            Err(error) => {
                assert!(error.hint.is_some(), "{}", record.line);
                (error.exit, error.text)
            }
        };
        // Scylla's fork accepts its own compaction strategy, and so does Loadstone.
        if record.line.contains("IncrementalCompactionStrategy") {
            assert_eq!((exit, record.exit), (0, 1));
            continue;
        }
        assert_eq!((exit, output), (record.exit, expand_help(&record.output, compat)), "{}", record.line);
    }
    records.len()
}

#[test]
fn command_lines_of_4_match_the_tool() {
    assert_eq!(compare(include_str!("../../fixtures/command-lines-4.0.txt"), Compat::V4), 400);
}

#[test]
fn command_lines_of_3_match_the_tool() {
    assert_eq!(compare(include_str!("../../fixtures/command-lines-3.11.txt"), Compat::V3_11), 20);
}

#[test]
fn quoting_is_irrelevant() {
    let plain = parse_line("mixed ratio(write=1,read=3) n=10 -rate threads=5").unwrap();
    for arguments in [
        vec!["mixed", "ratio( write = 1 ,read=3 )", "n = 10", "-rate", "threads =5"],
        vec!["mixed ratio(write=1,  read=3)  n=10 -rate threads=5"],
    ] {
        assert_eq!(parse(&arguments).unwrap(), plain, "{arguments:?}");
    }
}

#[test]
fn front_end_flags_may_stand_anywhere() {
    let last = parse_line("mixed n=10 -rate threads=5 --explain").unwrap();
    for line in ["--explain mixed n=10 -rate threads=5", "mixed --EXPLAIN n=10 -rate threads=5"] {
        assert_eq!(parse_line(line).unwrap(), last, "{line}");
    }
    assert_ne!(last, parse_line("mixed n=10 -rate threads=5").unwrap());
}

#[test]
fn unsupported_commands_name_a_replacement() {
    for (line, message, hint) in [
        ("user profile=a.yaml ops(insert=x)", "Invalid ops specification: insert=x", "ops(insert=1,NAME=2)"),
        ("user profile=a.yaml ops(insert=1) n=1 -schema", "the 'user' command requires a schema yaml", "the profile"),
        ("write n=10 -rate threads=2 no-warmup", "Invalid parameter no-warmup", "before the first option group"),
        ("mixed n=10 -errors ignore ratio(read=1)", "Invalid parameter ratio(read=1)", "before the first option group"),
        ("write n=10 cl=foo", "Invalid value foo; must match pattern", "correct cl=foo: help write describes it"),
        ("write n=10 -pop dist=uniform(10)", "Invalid parameter list for", "uniform(A..B)"),
        (
            "write n=10 -rate threads=5 threads=6",
            "threads= has been specified more than once",
            "write each option once",
        ),
        ("write n=10 -rate threads=2 retries=1", "Invalid parameter retries=1", "-rate accepts"),
        ("legacy -o insert", "legacy is not supported", "write n=1000000"),
        ("write n=10 -sendto host", "-sendto is not supported", "segment=k/n"),
        ("write n=10 -cloudconf file=a", "-cloudconf is not supported", "-node"),
        ("write n=10 -mode thrift -compat 3.11", "thrift is not supported", "native cql3"),
        ("write n=10 -mode native cql3 auth-provider=foo.Bar", "Invalid auth provider class: foo.Bar", "user="),
    ] {
        let error = parse_line(line).unwrap_err();
        assert!(error.message().contains(message), "{line}: {}", error.message());
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{line}: {:?}", error.hint);
        assert_eq!(error.exit, 1);
    }
}

#[test]
fn later_failures_of_the_tool_are_refused() {
    for (line, message) in [
        ("write n=10 -pop seq=5..1", "seq=5..1 is empty"),
        ("write n=10 -pop dist=uniform(10..1)", "cannot draw from Uniform"),
        ("write n=10 -pop dist=exp(1..2)", "cannot draw from Exponential"),
        ("write n=10 -col n=uniform(1..4)", "Variable column counts are not implemented for CQL"),
        ("write n=10 -col n=fixed(2b)", "more than"),
        ("write n=10 -insert revisit=uniform(1..3b)", "sample range is invalid"),
        ("write n=10 -pop seq=1..10 segment=3/3", "segment=3/3"),
        ("write n=10 -pop seq=1..10 segment=0/0", "segment=0/0"),
        ("write n=10 -pop seq=1..2 segment=0/3", "fewer numbers than segments"),
        ("write n=10 -pop segment=0/2", "segment= requires seq="),
        ("write n=10 -mode native cql3 connectionsPerHost=0", "from 1 to 1024, got 0"),
        ("write n=10 -mode native cql3 connectionsPerShard=1025", "from 1 to 1024, got 1025"),
        ("write n=10 -pop seq=1..10 read-lookback=fixed(50)", "Invalid lookback distribution"),
        ("mixed ratio(read=0) n=10", "non-zero ratio"),
        ("write n=10 -col size=fixed(3b)", "size="),
    ] {
        let error = parse_line(line).unwrap_err();
        assert!(error.message().contains(message), "{line}: {}", error.message());
    }
}

#[test]
fn warnings_name_the_consequence() {
    for (line, warning) in [
        ("write n=10 -insert revisit=uniform(1..1000)", "every partition has the same key"),
        ("write n=10 cl=SERIAL", "SERIAL"),
        ("read n=10 -schema keyspace=ks", "ignored"),
        ("write n=10 -insert visits=fixed(3)", "visits"),
        ("write n=10 -mode native cql3 maxPending=128", "maxPending= has no effect"),
        ("mixed n=10 clustering=fixed(9)", "clustering= has no effect"),
        ("read n=10 -pop dist=uniform(1..9) segment=0/2", "segment= has no effect"),
        ("write n=10 cl=LOCAL_SERIAL", "LOCAL_SERIAL has no effect"),
        ("write n=10 serial-cl=LOCAL_SERIAL", "LOCAL_SERIAL has no effect"),
        ("write n=10 -transport truststore=a ssl-ciphers=b", "ssl-ciphers= have no effect"),
    ] {
        let CommandLineRequest::Run(settings) = parse_line(line).unwrap() else { panic!("{line}") };
        assert!(settings.warnings.iter().any(|text| text.contains(warning)), "{line}: {:?}", settings.warnings);
    }
}

#[test]
fn defaults_have_no_warnings() {
    let tls = "write n=10 -transport truststore=a";
    let pool = "write n=10 -mode native cql3 connectionsPerHost=4 -node whitelist a";
    for line in ["write n=10", "read n=10 -errors ignore min-delay-ms=5", tls, pool, "mixed n=10 -compat 5"] {
        let CommandLineRequest::Run(settings) = parse_line(line).unwrap() else { panic!("{line}") };
        assert_eq!(settings.warnings, Vec::<String>::new(), "{line}");
    }
}

#[test]
fn intervals_have_the_longer_of_two_lengths() {
    for (line, interval_ms) in [
        ("write n=10", 1_000),
        ("write n=10 -log interval=250ms", 250),
        ("write n=10 -compat 5 -log interval=100ms", 100),
        ("write n=10 -compat 5 -reporting output-frequency=5s", 5_000),
        ("write n=10 -compat 5 -log interval=9s -reporting output-frequency=5s", 9_000),
    ] {
        let CommandLineRequest::Run(settings) = parse_line(line).unwrap() else { panic!("{line}") };
        assert_eq!(settings.interval_ms(), interval_ms, "{line}");
    }
}

#[test]
fn public_command_lines_are_accepted() {
    let lines = include_str!("../../fixtures/accepted-lines.txt");
    for line in lines.lines().filter(|line| !line.starts_with('#')) {
        assert!(parse_line(line).is_ok(), "{line}: {:?}", parse_line(line).map_err(|error| error.message().to_owned()));
    }
}

#[test]
fn versions_are_printed() {
    let CommandLineRequest::Print(text) = parse_line("version").unwrap() else { panic!() };
    assert!(text.starts_with("Version: 4.0-alpha2 (Loadstone "), "{text}");
    let CommandLineRequest::Print(text) = parse_line("version_json").unwrap() else { panic!() };
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
}

#[test]
fn extensions_of_the_fork_are_read() {
    let line = "write n=10 -errors retries=3 delay-policy=exponential min-delay-ms=10 max-delay-ms=500 \
                -mode native cql3 connectionsPerShard=3 -transport truststore=ca.pem hostname-verification=true";
    let CommandLineRequest::Run(settings) = parse_line(line).unwrap() else { panic!() };
    assert_eq!((settings.errors.tries, settings.errors.min_delay_ms, settings.errors.max_delay_ms), (4, 10, 500));
    assert_eq!((settings.errors.delay_policy, settings.errors.pause_ms()), (DelayPolicy::Exponential, 10));
    let block = render_settings(&settings);
    let delays = "  RetryPolicy: exponential\n  Minimum Delay: 10 MILLISECONDS\n  Maximum Delay: 500 MILLISECONDS\n";
    assert!(block.contains(&format!("  Tries: 4\n{delays}")), "{block}");
    assert_eq!(settings.mode.connections_per_shard, Some(3));
    assert!(settings.transport.hostname_verification);
}

#[test]
fn contradictory_delays_are_refused() {
    for (options, hint) in [
        ("min-delay-ms=6 max-delay-ms=5", "min-delay-ms= must not exceed"),
        ("min-delay-ms=20001", "min-delay-ms= must not exceed"),
        ("delay-policy=EXPONENTIAL", "must be at least 1"),
    ] {
        let error = parse_line(&format!("write n=10 -errors {options}")).unwrap_err();
        assert!(error.text.ends_with("Invalid -errors options provided, see output for valid options\n"), "{options}");
        assert!(error.hint.unwrap().contains(hint), "{options}");
    }
    let error = parse_line("write n=10 -errors delay-policy=never").unwrap_err();
    assert!(error.text.contains("Invalid value never; must match pattern constant|linear|exponential"), "{error:?}");
    for (options, pause_ms) in [("max-delay-ms=5", 5), ("delay-policy=linear", 0), ("min-delay-ms=3", 3)] {
        let CommandLineRequest::Run(settings) = parse_line(&format!("write n=10 -errors {options}")).unwrap() else {
            panic!()
        };
        assert_eq!((settings.errors.pause_ms(), settings.errors.has_delays()), (pause_ms, true), "{options}");
    }
}

/// A pattern that generates option groups with options, most of them valid, and with numbers and distributions of any
/// range.
fn group_pattern() -> String {
    let n = "(0|1|[1-9][0-9]{0,10})[kmbKMB]?";
    let d =
        format!("~?(fixed\\({n}\\)|(uniform|GAUSSIAN|exp|extreme|qextr|seq|weibull)\\({n}\\.\\.{n}(,{n}){{0,3}}\\))");
    let groups = [
        format!(
            "-pop (seq={n}\\.\\.{n}|dist={d})( no-wrap| contents=SORTED| read-lookback={d}| segment={n}/{n}){{0,2}}"
        ),
        format!("-col (n={d}|names=[a-c](,[a-c]){{0,3}}|slice)( size={d}| super={n}| timestamp={n}){{0,2}}"),
        format!("-rate (threads={n}( (throttle|fixed|limit)={n}/s){{0,2}}|threads>={n} threads<={n}( auto)?|auto)"),
        format!("-log (no-settings|no-summary|level=verbose|interval={n}(s|ms)?|file=a|hdrfile=b)( interval={n}ms)?"),
        format!(
            "-errors (ignore|skip-read-validation|retries={n})( min-delay-ms={n}| max-delay-ms={n}| delay-policy=linear){{0,2}}"
        ),
        format!(
            "-insert (revisit={d}|visits={d}|partitions={d}|batchtype=(unlogged|COUNTER))( (select|row-population)-ratio={d}/{n}){{0,2}}"
        ),
        format!("-schema (replication\\((factor={n},?|dc1={n},?){{0,2}}\\)|keyspace=a|compaction\\(strategy=[A-Z]\\))"),
        format!("-mode native cql3( unprepared| protocolVersion={n}| maxPending={n}| user=a){{0,2}}"),
        format!("-node [a-c](:{n})?(,[a-c](:{n})?){{0,3}}( whitelist)?|-port native={n}|-tokenrange split-factor={n}"),
        "-compat (3\\.0|3\\.11|4|5)|-graph file=a op=b|-transport truststore=a ssl-ciphers=b".to_owned(),
        format!("-reporting output-frequency={n}(ms|s|m|h|d) header-frequency={n}s|-sample live={n}|-jmx user=a"),
    ];
    groups.join("|")
}

/// Parses arguments, and uses the settings as a run does; `None` if the arguments are refused.
fn use_settings(arguments: &[&str]) -> Option<Box<Settings>> {
    let Ok(CommandLineRequest::Run(settings)) = parse(arguments) else { return None };
    let _ = render_settings(&settings);
    let _ = crate::explain::explain(&settings);
    let _ = (settings.warmup_operations(), settings.interval_ms());
    Some(settings)
}

proptest! {
    #[test]
    fn any_values_of_options_are_parsed_or_refused(
        command in "(read|write|counter_write|mixed( ratio\\(read=[0-9],write=[0-9]\\))?)( n=[0-9]{1,12}[kmb]?| duration=[0-9]{1,19}[smhd])?",
        groups in prop::collection::vec(prop::string::string_regex(&group_pattern()).unwrap(), 0..5),
    ) {
        let arguments: Vec<&str> = [command.as_str()].into_iter().chain(groups.iter().map(String::as_str)).collect();
        let _ = use_settings(&arguments);
    }

    #[test]
    fn any_arguments_are_parsed_or_refused(arguments in prop::collection::vec("\\PC{0,24}", 0..8)) {
        let _ = parse(&arguments);
    }

    #[test]
    fn any_mixture_of_options_is_parsed_or_refused(
        command in "read|write|mixed|counter_write|counter_read|n=1",
        options in prop::collection::vec(
        prop::sample::select(vec![
            "read", "write", "mixed", "counter_write", "help", "print", "n=10", "n=5b", "n=99999999999b", "duration=5m",
            "err<0.1", "cl=ONE", "cl=", "no-warmup", "-rate", "threads=5", "threads>=4", "auto", "fixed=10/s", "-pop",
            "seq=1..10", "seq=9..1", "dist=uniform(1..10)", "dist=~qextreme(1..10,2,999999)", "dist=seq(0..9b)",
            "segment=1/3", "segment=9/0", "no-wrap", "read-lookback=exp(1..9)", "-col", "n=fixed(3)", "n=fixed(2b)",
            "size=uniform(1..9b)", "names=a,b", "-insert", "revisit=uniform(1..9)", "row-population-ratio=fixed(1)/3",
            "-mode", "native", "cql3", "simplenative", "thrift", "-schema", "replication(factor=3)", "compaction(,)",
            "replication(", "-node", "a,b", "-log", "interval=99999999s", "-compat", "3.0", "5", "-reporting",
            "output-frequency=5s", "(", ")", "=", ",", "-", "ratio(read=1,write=2)", "clustering=fixed(3)",
        ]), 1..14)
    ) {
        let arguments: Vec<&str> = [command.as_str()].into_iter().chain(options).collect();
        let _ = use_settings(&arguments);
    }
}
