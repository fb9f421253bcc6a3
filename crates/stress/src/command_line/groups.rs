//! The options of each group, with the tool's names, values, defaults and help.
//!
//! Sources: the constants of Cassandra's `Settings*.java`. Options of ScyllaDB's fork, of cql-stress and of Loadstone
//! are marked as extensions.

mod connection;

pub(super) use connection::{
    graph_forms, jmx_forms, mode_forms, node_forms, port_forms, reporting_forms, schema_forms, transport_forms,
};

use super::option::{Form, Opt, distribution, mandatory_option, multi_option, operations, optional_option, ratio};
use super::pattern::{
    ANY, COUNT, DIGITS, DURATION, DURATION_3, FLAG, FRACTION, INTERVAL, RANGE, RATE, SHARE, ValueCheck, WEIGHT,
};
use crate::compat::Compat;

const CLUSTERING: &str = "Distribution clustering runs of operations of the same kind";

const LEVELS: ValueCheck =
    ValueCheck::Words("ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE|SERIAL|LOCAL_SERIAL");
const LEVELS_3: ValueCheck = ValueCheck::Words("ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE");

/// The options for the length of a command: until the rate is known precisely enough, a count, or a time.
fn length_forms(compat: Compat) -> [Vec<Opt>; 3] {
    let (duration, units) = if compat >= Compat::V4 {
        (DURATION, "Time to run in (in seconds, minutes, hours or days)")
    } else {
        (DURATION_3, "Time to run in (in seconds, minutes or hours)")
    };
    let common = || {
        let levels = if compat >= Compat::V4 { LEVELS } else { LEVELS_3 };
        vec![
            optional_option("no-warmup", FLAG, None, "Do not warmup the process"),
            optional_option(
                "truncate=",
                ValueCheck::Words("never|once|always"),
                Some("never"),
                "Truncate the table: never, before performing any work, or before each iteration",
            ),
            optional_option("cl=", levels, Some("LOCAL_ONE"), "Consistency level to use"),
            optional_option("serial-cl=", ValueCheck::Words("SERIAL|LOCAL_SERIAL"), None, "").mark_extension(),
        ]
    };
    let uncertainty = vec![
        optional_option(
            "err<",
            FRACTION,
            Some("0.02"),
            "Run until the standard error of the mean is below this fraction",
        ),
        optional_option(
            "n>",
            DIGITS,
            Some("30"),
            "Run at least this many iterations before accepting uncertainty convergence",
        ),
        optional_option(
            "n<",
            DIGITS,
            Some("200"),
            "Run at most this many iterations before accepting uncertainty convergence",
        ),
    ];
    let count = vec![mandatory_option("n=", COUNT, "Number of operations to perform")];
    let time = vec![mandatory_option("duration=", duration, units)];
    [uncertainty, count, time].map(|form| form.into_iter().chain(common()).collect())
}

fn basic_options() -> Vec<Opt> {
    vec![
        distribution("add=", Some("fixed(1)"), false, "Distribution of value of counter increments"),
        optional_option("keysize=", DIGITS, Some("10"), "Key size in bytes"),
    ]
}

/// Merges two lists of options as `GroupedOptions.merge` does: the required option `prefix` of `second`, then `first`,
/// then the remaining options of `second`.
fn merge_options(first: Vec<Opt>, second: Vec<Opt>, prefix: &str) -> Vec<Opt> {
    let (mut head, tail): (Vec<Opt>, Vec<Opt>) = second.into_iter().partition(|option| option.prefix == prefix);
    head.extend(first);
    head.extend(tail);
    head
}

/// The forms of `read`, `write`, `counter_read` and `counter_write`. Their help omits `add=` and `keysize=`.
pub(super) fn basic_forms(compat: Compat, is_help: bool) -> Vec<Form> {
    length_forms(compat)
        .into_iter()
        .map(|mut options| {
            if !is_help {
                options.extend(basic_options());
            }
            Form::new(options)
        })
        .collect()
}

/// The forms of `mixed`.
pub(super) fn mixture_forms(compat: Compat) -> Vec<Form> {
    let weight = |name: &'static str, default, label: &str| {
        optional_option(name, WEIGHT, default, &format!("Performs this many {label} operations out of total"))
    };
    length_forms(compat)
        .into_iter()
        .zip(["", "n=", "duration="])
        .map(|(length, head)| {
            let ratios = vec![
                weight("read=", Some("1"), "READ"),
                weight("write=", Some("1"), "WRITE"),
                weight("counter_write=", None, "COUNTER_WRITE"),
                weight("counter_read=", None, "COUNTER_READ"),
                weight("user=", None, "USER"),
            ];
            let own = vec![
                distribution("clustering=", Some("GAUSSIAN(1..10)"), false, CLUSTERING),
                multi_option(
                    "ratio",
                    "Specify the ratios for operations to perform; e.g. (read=2,write=1) will perform 2 reads for each write",
                    ratios,
                    false,
                ),
            ];
            let mut options = merge_options(own, length, head);
            options.extend(basic_options());
            Form::new(options)
        })
        .collect()
}

/// The forms of `user`.
pub(super) fn user_forms(compat: Compat) -> Vec<Form> {
    let (profile, ops) = if compat >= Compat::V4 {
        (
            "Specify the path to a yaml cql3 profile. Multiple comma separated files can be added.",
            "Specify the ratios for inserts/queries to perform; e.g. ops(insert=2,<query1>=1) will perform 2 inserts for each query1. When using multiple files, specify as keyspace.table.op.",
        )
    } else {
        (
            "Specify the path to a yaml cql3 profile",
            "Specify the ratios for inserts/queries to perform; e.g. ops(insert=2,<query1>=1) will perform 2 inserts for each query1",
        )
    };
    length_forms(compat)
        .into_iter()
        .zip(["", "n=", "duration="])
        .map(|(length, head)| {
            let own = vec![operations(ops), distribution("clustering=", Some("gaussian(1..10)"), false, CLUSTERING)];
            let mut options = vec![mandatory_option("profile=", ANY, profile)];
            options.extend(merge_options(own, length, head));
            Form::new(options)
        })
        .collect()
}

/// The forms of `print`.
pub(super) fn print_forms() -> Vec<Form> {
    vec![Form::new(vec![distribution("dist=", None, true, "A mathematical distribution")])]
}

/// `-rate`: a number of threads, or steps. The tool's help lists the forms in this order, but the tool tries them in
/// reverse order.
pub(super) fn rate_forms(compat: Compat) -> Vec<Form> {
    let mut threads = vec![mandatory_option("threads=", DIGITS, "run this many clients concurrently")];
    let limit = optional_option("limit=", RATE, Some("0/s"), "limit operations per second across all clients");
    let throttle = optional_option(
        "throttle=",
        RATE,
        Some("0/s"),
        "throttle operations per second across all clients to a maximum rate (or less) with no implied schedule",
    );
    let fixed = optional_option(
        "fixed=",
        RATE,
        Some("0/s"),
        "expect fixed rate of operations per second across all clients with implied schedule",
    );
    if compat == Compat::V3_0 {
        threads.extend([limit, throttle.mark_extension(), fixed.mark_extension()]);
    } else {
        threads.extend([throttle, fixed]);
    }
    let steps = vec![
        optional_option("threads>=", DIGITS, Some("4"), "run at least this many clients concurrently"),
        optional_option("threads<=", DIGITS, Some("1000"), "run at most this many clients concurrently"),
        optional_option("auto", FLAG, None, "stop increasing threads once throughput saturates"),
    ];
    vec![Form::new(threads), Form::new(steps)]
}

/// The forms of `-pop`, with the default range `1..limit`.
pub(super) fn population_forms(limit: &str) -> Vec<Form> {
    let common = || {
        [
            optional_option(
                "contents=",
                ValueCheck::Words("(sorted|shuffled)"),
                None,
                "SORTED or SHUFFLED (intra-)partition order; if not specified, will be consistent but arbitrary order",
            ),
            optional_option("segment=", SHARE, None, "").mark_extension(),
        ]
    };
    let mut sequence = vec![
        mandatory_option("seq=", RANGE, "Generate all seeds in sequence").with_default(format!("1..{limit}")),
        optional_option(
            "no-wrap",
            FLAG,
            None,
            "Terminate the stress test once all seeds in the range have been visited",
        ),
        distribution("read-lookback=", None, false, "Select read seeds from the recently visited write seeds"),
    ];
    let mut draws = vec![distribution(
        "dist=",
        Some(&format!("gaussian(1..{limit})")),
        false,
        "Seeds are selected from this distribution",
    )];
    sequence.extend(common());
    draws.extend(common());
    vec![Form::new(sequence), Form::new(draws)]
}

/// The forms of `-insert`.
pub(super) fn insert_forms() -> Vec<Form> {
    vec![Form::new(vec![
        distribution(
            "revisit=",
            Some("uniform(1..1M)"),
            false,
            "The distribution with which we revisit partial writes (see visits); implicitly defines size of revisit collection",
        ),
        distribution(
            "visits=",
            Some("fixed(1)"),
            false,
            "The target number of inserts to split a partition into; if more than one, the partition will be placed in the revisit set",
        ),
        distribution("partitions=", None, false, "The number of partitions to update in a single batch"),
        optional_option(
            "batchtype=",
            ValueCheck::Words("unlogged|logged|counter"),
            None,
            "Specify the type of batch statement (LOGGED, UNLOGGED or COUNTER)",
        ),
        ratio("select-ratio=", "The uniform probability of visiting any CQL row in the generated partition"),
        ratio("row-population-ratio=", "The percent of a given rows columns to populate"),
    ])]
}

/// The forms of `-col`.
pub(super) fn column_forms() -> Vec<Form> {
    let common = || {
        vec![
            optional_option(
                "slice",
                FLAG,
                None,
                "If set, range slices will be used for reads, otherwise a names query will be",
            ),
            optional_option(
                "super=",
                DIGITS,
                Some("0"),
                "Number of super columns to use (no super columns used if not specified)",
            ),
            optional_option(
                "comparator=",
                ValueCheck::Words("TimeUUIDType|AsciiType|UTF8Type"),
                Some("AsciiType"),
                "Column Comparator to use",
            ),
            optional_option("timestamp=", DIGITS, None, "If set, all columns will be written with the given timestamp"),
            distribution("size=", Some("FIXED(34)"), false, "Cell size distribution"),
        ]
    };
    let mut names = vec![mandatory_option("names=", ANY, "Column names")];
    let mut count = vec![distribution("n=", Some("FIXED(5)"), false, "Cell count distribution, per operation")];
    names.extend(common());
    count.extend(common());
    vec![Form::new(names), Form::new(count)]
}

/// The forms of `-errors`.
pub(super) fn error_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option("retries=", DIGITS, Some("9"), "Number of tries to perform for each operation before failing"),
        optional_option("ignore", FLAG, None, "Do not fail on errors"),
        optional_option("skip-read-validation", FLAG, None, "Skip read validation and message output"),
        optional_option("delay-policy=", ValueCheck::Words("constant|linear|exponential"), Some("constant"), "")
            .mark_extension(),
        optional_option("min-delay-ms=", DIGITS, Some("0"), "").mark_extension(),
        optional_option("max-delay-ms=", DIGITS, Some("20000"), "").mark_extension(),
    ])]
}

/// The forms of `-log`.
pub(super) fn log_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option(
            "level=",
            ValueCheck::Words("(minimal|normal|verbose)"),
            Some("normal"),
            "Logging level (minimal, normal or verbose)",
        ),
        optional_option("no-summary", FLAG, None, "Disable printing of aggregate statistics at the end of a test"),
        optional_option("file=", ANY, None, "Log to a file"),
        optional_option("hdrfile=", ANY, None, "Log to a file"),
        optional_option("interval=", INTERVAL, Some("1s"), "Log progress every <value> seconds or milliseconds"),
        optional_option("no-settings", FLAG, None, "Disable printing of settings values at start of test"),
    ])]
}

/// The forms of `-tokenrange`.
pub(super) fn token_range_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option("wrap", FLAG, None, "Re-use token ranges in order to terminate stress iterations"),
        optional_option("split-factor=", COUNT, Some("1"), "Split every token range by this factor"),
    ])]
}

/// The forms of `-sample`, which exists only in 3.0.
pub(super) fn sample_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option("history=", COUNT, Some("50K"), "The number of samples to save across the whole run"),
        optional_option("live=", COUNT, Some("1M"), "The number of samples to save between reports"),
        optional_option("report=", COUNT, Some("100K"), "The maximum number of samples to use when building a report"),
    ])]
}
