//! The options of each group: names, values, defaults and help of the tool.
//!
//! Sources: Cassandra's `Settings*.java`, whose constants these are. Options of ScyllaDB's fork, of cql-stress and of
//! Loadstone are marked as extensions.

use super::option::{Form, Opt, distribution, multi, operations, optional, ratio, require};
use super::pattern::{
    ANY, COUNT, Check, DIGITS, DURATION, DURATION_3, FLAG, FRACTION, HOSTS, INTERVAL, PROTOCOL, PROTOCOL_5, RANGE,
    RATE, SHARE, SOME, WEIGHT,
};
use crate::compat::Compat;

const LOCATOR: &str = "org.apache.cassandra.locator.";
const COMPACTION: &str = "org.apache.cassandra.db.compaction.";
pub(super) const FRAMED_TRANSPORT: &str = "org.apache.cassandra.thrift.TFramedTransportFactory";
const CIPHERS: &str = "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_RSA_WITH_AES_256_CBC_SHA";
const CLUSTERING: &str = "Distribution clustering runs of operations of the same kind";

const LEVELS: Check =
    Check::Words("ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE|SERIAL|LOCAL_SERIAL");
const LEVELS_3: Check = Check::Words("ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE");

/// The options of a command's length: until the rate is known, a count, a time.
fn length_forms(compat: Compat) -> [Vec<Opt>; 3] {
    let (duration, units) = if compat >= Compat::V4 {
        (DURATION, "Time to run in (in seconds, minutes, hours or days)")
    } else {
        (DURATION_3, "Time to run in (in seconds, minutes or hours)")
    };
    let common = || {
        let levels = if compat >= Compat::V4 { LEVELS } else { LEVELS_3 };
        vec![
            optional("no-warmup", FLAG, None, "Do not warmup the process"),
            optional(
                "truncate=",
                Check::Words("never|once|always"),
                Some("never"),
                "Truncate the table: never, before performing any work, or before each iteration",
            ),
            optional("cl=", levels, Some("LOCAL_ONE"), "Consistency level to use"),
            optional("serial-cl=", Check::Words("SERIAL|LOCAL_SERIAL"), None, "").extension(),
        ]
    };
    let uncertainty = vec![
        optional("err<", FRACTION, Some("0.02"), "Run until the standard error of the mean is below this fraction"),
        optional(
            "n>",
            DIGITS,
            Some("30"),
            "Run at least this many iterations before accepting uncertainty convergence",
        ),
        optional(
            "n<",
            DIGITS,
            Some("200"),
            "Run at most this many iterations before accepting uncertainty convergence",
        ),
    ];
    let count = vec![require("n=", COUNT, "Number of operations to perform")];
    let time = vec![require("duration=", duration, units)];
    [uncertainty, count, time].map(|form| form.into_iter().chain(common()).collect())
}

fn basic_options() -> Vec<Opt> {
    vec![
        distribution("add=", Some("fixed(1)"), false, "Distribution of value of counter increments"),
        optional("keysize=", DIGITS, Some("10"), "Key size in bytes"),
    ]
}

/// Required options first, as `GroupedOptions.merge` has them.
fn merge(first: Vec<Opt>, second: Vec<Opt>, prefix: &str) -> Vec<Opt> {
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
        optional(name, WEIGHT, default, &format!("Performs this many {label} operations out of total"))
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
                multi(
                    "ratio",
                    "Specify the ratios for operations to perform; e.g. (read=2,write=1) will perform 2 reads for each write",
                    ratios,
                    false,
                ),
            ];
            let mut options = merge(own, length, head);
            options.extend(basic_options());
            Form::new(options)
        })
        .collect()
}

/// The forms of `user`, for its help.
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
            let mut options = vec![require("profile=", ANY, profile)];
            options.extend(merge(own, length, head));
            Form::new(options)
        })
        .collect()
}

/// `print`.
pub(super) fn print_forms() -> Vec<Form> {
    vec![Form::new(vec![distribution("dist=", None, true, "A mathematical distribution")])]
}

/// `-rate`: a number of threads, or steps. The tool's help has the forms in this order and tries them in the other.
pub(super) fn rate_forms(compat: Compat) -> Vec<Form> {
    let mut threads = vec![require("threads=", DIGITS, "run this many clients concurrently")];
    let limit = optional("limit=", RATE, Some("0/s"), "limit operations per second across all clients");
    let throttle = optional(
        "throttle=",
        RATE,
        Some("0/s"),
        "throttle operations per second across all clients to a maximum rate (or less) with no implied schedule",
    );
    let fixed = optional(
        "fixed=",
        RATE,
        Some("0/s"),
        "expect fixed rate of operations per second across all clients with implied schedule",
    );
    if compat == Compat::V3_0 {
        threads.extend([limit, throttle.extension(), fixed.extension()]);
    } else {
        threads.extend([throttle, fixed]);
    }
    let steps = vec![
        optional("threads>=", DIGITS, Some("4"), "run at least this many clients concurrently"),
        optional("threads<=", DIGITS, Some("1000"), "run at most this many clients concurrently"),
        optional("auto", FLAG, None, "stop increasing threads once throughput saturates"),
    ];
    vec![Form::new(threads), Form::new(steps)]
}

/// `-pop`, with the default range `1..limit`.
pub(super) fn population_forms(limit: &str) -> Vec<Form> {
    let common = || {
        [
            optional(
                "contents=",
                Check::Words("(sorted|shuffled)"),
                None,
                "SORTED or SHUFFLED (intra-)partition order; if not specified, will be consistent but arbitrary order",
            ),
            optional("segment=", SHARE, None, "").extension(),
        ]
    };
    let mut sequence = vec![
        require("seq=", RANGE, "Generate all seeds in sequence").with_default(format!("1..{limit}")),
        optional("no-wrap", FLAG, None, "Terminate the stress test once all seeds in the range have been visited"),
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

/// `-insert`.
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
        optional(
            "batchtype=",
            Check::Words("unlogged|logged|counter"),
            None,
            "Specify the type of batch statement (LOGGED, UNLOGGED or COUNTER)",
        ),
        ratio("select-ratio=", "The uniform probability of visiting any CQL row in the generated partition"),
        ratio("row-population-ratio=", "The percent of a given rows columns to populate"),
    ])]
}

/// `-col`.
pub(super) fn column_forms() -> Vec<Form> {
    let common = || {
        vec![
            optional(
                "slice",
                FLAG,
                None,
                "If set, range slices will be used for reads, otherwise a names query will be",
            ),
            optional(
                "super=",
                DIGITS,
                Some("0"),
                "Number of super columns to use (no super columns used if not specified)",
            ),
            optional(
                "comparator=",
                Check::Words("TimeUUIDType|AsciiType|UTF8Type"),
                Some("AsciiType"),
                "Column Comparator to use",
            ),
            optional("timestamp=", DIGITS, None, "If set, all columns will be written with the given timestamp"),
            distribution("size=", Some("FIXED(34)"), false, "Cell size distribution"),
        ]
    };
    let mut names = vec![require("names=", ANY, "Column names")];
    let mut count = vec![distribution("n=", Some("FIXED(5)"), false, "Cell count distribution, per operation")];
    names.extend(common());
    count.extend(common());
    vec![Form::new(names), Form::new(count)]
}

/// `-errors`.
pub(super) fn error_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional("retries=", DIGITS, Some("9"), "Number of tries to perform for each operation before failing"),
        optional("ignore", FLAG, None, "Do not fail on errors"),
        optional("skip-read-validation", FLAG, None, "Skip read validation and message output"),
        optional("delay-policy=", Check::Words("constant|linear|exponential"), Some("constant"), "").extension(),
        optional("min-delay-ms=", DIGITS, Some("0"), "").extension(),
        optional("max-delay-ms=", DIGITS, Some("20000"), "").extension(),
    ])]
}

/// `-log`.
pub(super) fn log_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional(
            "level=",
            Check::Words("(minimal|normal|verbose)"),
            Some("normal"),
            "Logging level (minimal, normal or verbose)",
        ),
        optional("no-summary", FLAG, None, "Disable printing of aggregate statistics at the end of a test"),
        optional("file=", ANY, None, "Log to a file"),
        optional("hdrfile=", ANY, None, "Log to a file"),
        optional("interval=", INTERVAL, Some("1s"), "Log progress every <value> seconds or milliseconds"),
        optional("no-settings", FLAG, None, "Disable printing of settings values at start of test"),
    ])]
}

/// `-mode`.
pub(super) fn mode_forms(compat: Compat) -> Vec<Form> {
    let compression = || optional("compression=", Check::Words("none|lz4|snappy"), Some("none"), "");
    let port = || optional("port=", DIGITS, Some("9046"), "");
    let provider = || {
        optional("auth-provider=", ANY, None, "Fully qualified implementation of com.datastax.driver.core.AuthProvider")
    };
    let pending = || optional("maxPending=", DIGITS, Some("128"), "Maximum pending requests per connection");
    let connections = || optional("connectionsPerHost=", DIGITS, Some("8"), "Number of connections per host");
    let version = |check| optional("protocolVersion=", check, Some("NEWEST_SUPPORTED"), "CQL Protocol Version");
    let user = |description: &str| optional("user=", SOME, None, description);
    let password = |description: &str| optional("password=", SOME, None, description);
    let extensions = || {
        [
            optional("connectionsPerShard=", DIGITS, None, "").extension(),
            optional("requestTimeout=", DIGITS, Some("12000"), "").extension(),
        ]
    };
    if compat == Compat::V5 {
        let from_file = |what: &str, key: &str| {
            format!("CQL {what}, when specified, it will override the value in credentials file for key 'cql.{key}'")
        };
        let mut options = vec![
            user(&from_file("user", "username")),
            password(&from_file("password", "password")),
            port(),
            provider(),
            pending(),
            compression(),
            connections(),
            optional("prepared", FLAG, None, "use prepared statements"),
            version(PROTOCOL_5),
            optional("simplenative", FLAG, None, ""),
            optional("unprepared", FLAG, None, "").extension(),
        ];
        options.extend(extensions());
        return vec![Form::new(options)];
    }
    let mut native = vec![
        require("native", FLAG, ""),
        optional("unprepared", FLAG, None, "force use of unprepared statements"),
        require("cql3", FLAG, ""),
        compression(),
        port(),
        user("username"),
        password("password"),
        provider(),
        pending(),
        connections(),
        version(PROTOCOL),
    ];
    native.extend(extensions());
    let simple = vec![
        require("simplenative", FLAG, ""),
        optional("prepared", FLAG, None, ""),
        require("cql3", FLAG, ""),
        port(),
    ];
    let thrift =
        vec![require("thrift", FLAG, ""), optional("smart", FLAG, None, ""), user("username"), password("password")];
    let mut forms = vec![Form::new(native), Form::new(simple)];
    if compat <= Compat::V3_11 {
        forms.insert(0, Form::new(thrift));
    }
    forms
}

/// `-schema`.
pub(super) fn schema_forms() -> Vec<Form> {
    let replication = vec![
        optional(
            "strategy=",
            Check::Adapt(complete_replication),
            Some("org.apache.cassandra.locator.SimpleStrategy"),
            "The replication strategy to use",
        ),
        optional("factor=", DIGITS, Some("1"), "The number of replicas"),
    ];
    let compaction =
        vec![optional("strategy=", Check::Adapt(check_compaction), None, "The compaction strategy to use")];
    vec![Form::new(vec![
        multi("replication", "Define the replication strategy and any parameters", replication, true),
        optional("keyspace=", ANY, Some("keyspace1"), "The keyspace name to use"),
        multi("compaction", "Define the compaction strategy and any parameters", compaction, true),
        optional("compression=", ANY, None, "Specify the compression to use for sstable, default:no compression"),
    ])]
}

/// The full name of a class that Cassandra or `ScyllaDB` has.
fn complete_replication(name: &str) -> Result<String, String> {
    const CLASSES: [&str; 6] = [
        "SimpleStrategy",
        "NetworkTopologyStrategy",
        "LocalStrategy",
        "OldNetworkTopologyStrategy",
        "MetaStrategy",
        "EverywhereStrategy",
    ];
    let class = name.strip_prefix(LOCATOR).unwrap_or(name);
    // The tool of Apache knows no EverywhereStrategy; a class of another package cannot be looked up here.
    if CLASSES[..5].contains(&class) {
        Ok(format!("{LOCATOR}{class}"))
    } else {
        Err(format!("Invalid replication strategy: {name}"))
    }
}

fn check_compaction(name: &str) -> Result<String, String> {
    const CLASSES: [&str; 5] = [
        "SizeTieredCompactionStrategy",
        "LeveledCompactionStrategy",
        "TimeWindowCompactionStrategy",
        "DateTieredCompactionStrategy",
        "UnifiedCompactionStrategy",
    ];
    let class = name.strip_prefix(COMPACTION).unwrap_or(name);
    if CLASSES.contains(&class) { Ok(name.to_owned()) } else { Err(format!("Invalid compaction strategy: {name}")) }
}

/// `-node`. The list has no name and so comes last.
pub(super) fn node_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional("datacenter=", ANY, None, "Datacenter used for DCAwareRoundRobinLoadPolicy"),
        optional("whitelist", FLAG, None, "Limit communications to the provided nodes"),
        optional("file=", ANY, None, "Node file (one per line)"),
        optional("", HOSTS, Some("localhost"), "comma delimited list of nodes"),
    ])]
}

/// `-transport`.
pub(super) fn transport_forms(compat: Compat) -> Vec<Form> {
    let from_file = |text: &str, key: &str| {
        if compat == Compat::V5 {
            format!("{text}, when specified, it will override the value in credentials file {key}")
        } else {
            text.to_owned()
        }
    };
    let mut options = vec![
        optional("truststore=", ANY, None, "SSL: full path to truststore"),
        optional(
            "truststore-password=",
            ANY,
            None,
            &from_file("SSL: truststore password", "of key 'transport.truststore.password'"),
        ),
        optional("keystore=", ANY, None, "SSL: full path to keystore"),
        optional(
            "keystore-password=",
            ANY,
            None,
            &from_file("SSL: keystore password", "for key 'transport.keystore.password'"),
        ),
        optional("ssl-protocol=", ANY, Some("TLS"), "SSL: connection protocol to use"),
    ];
    let ciphers = if compat == Compat::V5 { None } else { Some(CIPHERS) };
    let ciphers = optional("ssl-ciphers=", ANY, ciphers, "SSL: comma delimited list of encryption suites to use");
    if compat <= Compat::V3_11 {
        options.insert(
            0,
            optional(
                "factory=",
                Check::Adapt(check_factory),
                Some(FRAMED_TRANSPORT),
                "Fully-qualified ITransportFactory class name for creating a connection. Note: For Thrift over SSL, use org.apache.cassandra.thrift.SSLTransportFactory.",
            ),
        );
        options.extend([
            optional("ssl-alg=", ANY, Some("SunX509"), "SSL: algorithm"),
            optional("store-type=", ANY, Some("JKS"), "SSL: keystore format"),
            ciphers,
        ]);
    } else {
        options.extend([optional("ssl-alg=", ANY, None, "SSL: algorithm"), ciphers]);
    }
    options.push(optional("hostname-verification=", Check::Words("true|false|1|0"), None, "").extension());
    vec![Form::new(options)]
}

fn check_factory(name: &str) -> Result<String, String> {
    if matches!(name, FRAMED_TRANSPORT | "org.apache.cassandra.thrift.SSLTransportFactory") {
        Ok(name.to_owned())
    } else {
        Err(format!("Invalid transport factory class: {name}"))
    }
}

/// `-port`.
pub(super) fn port_forms(compat: Compat) -> Vec<Form> {
    let mut options =
        vec![optional("native=", DIGITS, Some("9042"), "Use this port for the Cassandra native protocol")];
    if compat <= Compat::V3_11 {
        options.push(optional("thrift=", DIGITS, Some("9160"), "Use this port for the thrift protocol"));
    }
    options.push(optional("jmx=", DIGITS, Some("7199"), "Use this port for retrieving statistics over jmx"));
    vec![Form::new(options)]
}

/// `-graph`.
pub(super) fn graph_forms() -> Vec<Form> {
    vec![Form::new(vec![
        require("file=", ANY, "HTML file to create or append to"),
        optional(
            "revision=",
            ANY,
            Some("unknown"),
            "Unique name to assign to the current configuration being stressed",
        ),
        optional("title=", ANY, None, "Title for chart (current date by default)"),
        optional("op=", ANY, None, "Alternative name for current operation (stress op name used by default)"),
    ])]
}

/// `-tokenrange`.
pub(super) fn token_range_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional("wrap", FLAG, None, "Re-use token ranges in order to terminate stress iterations"),
        optional("split-factor=", COUNT, Some("1"), "Split every token range by this factor"),
    ])]
}

/// `-sample`, of 3.0.
pub(super) fn sample_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional("history=", COUNT, Some("50K"), "The number of samples to save across the whole run"),
        optional("live=", COUNT, Some("1M"), "The number of samples to save between reports"),
        optional("report=", COUNT, Some("100K"), "The maximum number of samples to use when building a report"),
    ])]
}

/// `-jmx`, of 5.0.
pub(super) fn jmx_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional(
            "user=",
            ANY,
            None,
            "Username for JMX connection, when specified, it will override the value in credentials file for key 'jmx.username'",
        ),
        optional(
            "password=",
            ANY,
            None,
            "Password for JMX connection, when specified, it will override the value in credentials file for key 'jmx.password'",
        ),
    ])]
}

/// `-reporting`, of 5.0.
pub(super) fn reporting_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional(
            "output-frequency=",
            ANY,
            Some("1s"),
            "Frequency each line of output will be printed out when running a stress test, defaults to '1s'.",
        ),
        optional(
            "header-frequency=",
            ANY,
            None,
            "Frequency the header for the statistics will be printed out. If not specified, the header will be printed at the beginning of the test only.",
        ),
    ])]
}
