//! The option groups for servers and connections.

use crate::command_line::option::{Form, mandatory_option, multi_option, optional_option};
use crate::command_line::pattern::{ANY, DIGITS, FLAG, HOSTS, PROTOCOL, PROTOCOL_5, SOME, ValueCheck};
use crate::compat::Compat;
use crate::settings::DEFAULT_CIPHERS;

const LOCATOR: &str = "org.apache.cassandra.locator.";
const COMPACTION: &str = "org.apache.cassandra.db.compaction.";
const FRAMED_TRANSPORT: &str = "org.apache.cassandra.thrift.TFramedTransportFactory";

/// The forms of `-mode`.
pub(in crate::command_line) fn mode_forms(compat: Compat) -> Vec<Form> {
    let compression = || optional_option("compression=", ValueCheck::Words("none|lz4|snappy"), Some("none"), "");
    let port = || optional_option("port=", DIGITS, Some("9046"), "");
    let provider = || {
        optional_option(
            "auth-provider=",
            ANY,
            None,
            "Fully qualified implementation of com.datastax.driver.core.AuthProvider",
        )
    };
    let pending = || optional_option("maxPending=", DIGITS, Some("128"), "Maximum pending requests per connection");
    let connections = || optional_option("connectionsPerHost=", DIGITS, Some("8"), "Number of connections per host");
    let version = |check| optional_option("protocolVersion=", check, Some("NEWEST_SUPPORTED"), "CQL Protocol Version");
    let user = |description: &str| optional_option("user=", SOME, None, description);
    let password = |description: &str| optional_option("password=", SOME, None, description);
    let extensions = || {
        [
            optional_option("connectionsPerShard=", DIGITS, None, "").mark_extension(),
            optional_option("requestTimeout=", DIGITS, Some("12000"), "").mark_extension(),
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
            optional_option("prepared", FLAG, None, "use prepared statements"),
            version(PROTOCOL_5),
            optional_option("simplenative", FLAG, None, ""),
            optional_option("unprepared", FLAG, None, "").mark_extension(),
        ];
        options.extend(extensions());
        return vec![Form::new(options)];
    }
    let mut native = vec![
        mandatory_option("native", FLAG, ""),
        optional_option("unprepared", FLAG, None, "force use of unprepared statements"),
        mandatory_option("cql3", FLAG, ""),
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
        mandatory_option("simplenative", FLAG, ""),
        optional_option("prepared", FLAG, None, ""),
        mandatory_option("cql3", FLAG, ""),
        port(),
    ];
    let thrift = vec![
        mandatory_option("thrift", FLAG, ""),
        optional_option("smart", FLAG, None, ""),
        user("username"),
        password("password"),
    ];
    let mut forms = vec![Form::new(native), Form::new(simple)];
    if compat <= Compat::V3_11 {
        forms.insert(0, Form::new(thrift));
    }
    forms
}

/// The forms of `-schema`.
pub(in crate::command_line) fn schema_forms() -> Vec<Form> {
    let replication = vec![
        optional_option(
            "strategy=",
            ValueCheck::Adapt(complete_replication),
            Some("org.apache.cassandra.locator.SimpleStrategy"),
            "The replication strategy to use",
        ),
        optional_option("factor=", DIGITS, Some("1"), "The number of replicas"),
    ];
    let compaction =
        vec![optional_option("strategy=", ValueCheck::Adapt(check_compaction), None, "The compaction strategy to use")];
    vec![Form::new(vec![
        multi_option("replication", "Define the replication strategy and any parameters", replication, true),
        optional_option("keyspace=", ANY, Some("keyspace1"), "The keyspace name to use"),
        multi_option("compaction", "Define the compaction strategy and any parameters", compaction, true),
        optional_option(
            "compression=",
            ANY,
            None,
            "Specify the compression to use for sstable, default:no compression",
        ),
    ])]
}

/// The full name of a replication class that Apache's tool knows.
fn complete_replication(name: &str) -> Result<String, String> {
    // Apache's tool does not know ScyllaDB's EverywhereStrategy.
    const CLASSES: [&str; 5] =
        ["SimpleStrategy", "NetworkTopologyStrategy", "LocalStrategy", "OldNetworkTopologyStrategy", "MetaStrategy"];
    let class = name.strip_prefix(LOCATOR).unwrap_or(name);
    // A class in another package cannot be looked up here.
    if CLASSES.contains(&class) {
        Ok(format!("{LOCATOR}{class}"))
    } else {
        Err(format!("Invalid replication strategy: {name}"))
    }
}

fn check_compaction(name: &str) -> Result<String, String> {
    // The last class is ScyllaDB's.
    const CLASSES: [&str; 6] = [
        "SizeTieredCompactionStrategy",
        "LeveledCompactionStrategy",
        "TimeWindowCompactionStrategy",
        "DateTieredCompactionStrategy",
        "UnifiedCompactionStrategy",
        "IncrementalCompactionStrategy",
    ];
    let class = name.strip_prefix(COMPACTION).unwrap_or(name);
    if CLASSES.contains(&class) { Ok(name.to_owned()) } else { Err(format!("Invalid compaction strategy: {name}")) }
}

/// The forms of `-node`. The list of nodes has no name, and is therefore matched last.
pub(in crate::command_line) fn node_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option("datacenter=", ANY, None, "Datacenter used for DCAwareRoundRobinLoadPolicy"),
        optional_option("whitelist", FLAG, None, "Limit communications to the provided nodes"),
        optional_option("file=", ANY, None, "Node file (one per line)"),
        optional_option("", HOSTS, Some("localhost"), "comma delimited list of nodes"),
    ])]
}

/// The forms of `-transport`.
pub(in crate::command_line) fn transport_forms(compat: Compat) -> Vec<Form> {
    let from_file = |text: &str, key: &str| {
        if compat == Compat::V5 {
            format!("{text}, when specified, it will override the value in credentials file {key}")
        } else {
            text.to_owned()
        }
    };
    let mut options = vec![
        optional_option("truststore=", ANY, None, "SSL: full path to truststore"),
        optional_option(
            "truststore-password=",
            ANY,
            None,
            &from_file("SSL: truststore password", "of key 'transport.truststore.password'"),
        ),
        optional_option("keystore=", ANY, None, "SSL: full path to keystore"),
        optional_option(
            "keystore-password=",
            ANY,
            None,
            &from_file("SSL: keystore password", "for key 'transport.keystore.password'"),
        ),
        optional_option("ssl-protocol=", ANY, Some("TLS"), "SSL: connection protocol to use"),
    ];
    let ciphers = if compat == Compat::V5 { None } else { Some(DEFAULT_CIPHERS) };
    let ciphers =
        optional_option("ssl-ciphers=", ANY, ciphers, "SSL: comma delimited list of encryption suites to use");
    if compat <= Compat::V3_11 {
        options.insert(
            0,
            optional_option(
                "factory=",
                ValueCheck::Adapt(check_factory),
                Some(FRAMED_TRANSPORT),
                "Fully-qualified ITransportFactory class name for creating a connection. Note: For Thrift over SSL, use org.apache.cassandra.thrift.SSLTransportFactory.",
            ),
        );
        options.extend([
            optional_option("ssl-alg=", ANY, Some("SunX509"), "SSL: algorithm"),
            optional_option("store-type=", ANY, Some("JKS"), "SSL: keystore format"),
            ciphers,
        ]);
    } else {
        options.extend([optional_option("ssl-alg=", ANY, None, "SSL: algorithm"), ciphers]);
    }
    options.push(
        optional_option("hostname-verification=", ValueCheck::Words("true|false|1|0"), None, "").mark_extension(),
    );
    vec![Form::new(options)]
}

fn check_factory(name: &str) -> Result<String, String> {
    if matches!(name, FRAMED_TRANSPORT | "org.apache.cassandra.thrift.SSLTransportFactory") {
        Ok(name.to_owned())
    } else {
        Err(format!("Invalid transport factory class: {name}"))
    }
}

/// The forms of `-port`.
pub(in crate::command_line) fn port_forms(compat: Compat) -> Vec<Form> {
    let mut options =
        vec![optional_option("native=", DIGITS, Some("9042"), "Use this port for the Cassandra native protocol")];
    if compat <= Compat::V3_11 {
        options.push(optional_option("thrift=", DIGITS, Some("9160"), "Use this port for the thrift protocol"));
    }
    options.push(optional_option("jmx=", DIGITS, Some("7199"), "Use this port for retrieving statistics over jmx"));
    vec![Form::new(options)]
}

/// The forms of `-graph`.
pub(in crate::command_line) fn graph_forms() -> Vec<Form> {
    vec![Form::new(vec![
        mandatory_option("file=", ANY, "HTML file to create or append to"),
        optional_option(
            "revision=",
            ANY,
            Some("unknown"),
            "Unique name to assign to the current configuration being stressed",
        ),
        optional_option("title=", ANY, None, "Title for chart (current date by default)"),
        optional_option("op=", ANY, None, "Alternative name for current operation (stress op name used by default)"),
    ])]
}

/// The forms of `-jmx`, which exists only in 5.0.
pub(in crate::command_line) fn jmx_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option(
            "user=",
            ANY,
            None,
            "Username for JMX connection, when specified, it will override the value in credentials file for key 'jmx.username'",
        ),
        optional_option(
            "password=",
            ANY,
            None,
            "Password for JMX connection, when specified, it will override the value in credentials file for key 'jmx.password'",
        ),
    ])]
}

/// The forms of `-reporting`, which exists only in 5.0.
pub(in crate::command_line) fn reporting_forms() -> Vec<Form> {
    vec![Form::new(vec![
        optional_option(
            "output-frequency=",
            ANY,
            Some("1s"),
            "Frequency each line of output will be printed out when running a stress test, defaults to '1s'.",
        ),
        optional_option(
            "header-frequency=",
            ANY,
            None,
            "Frequency the header for the statistics will be printed out. If not specified, the header will be printed at the beginning of the test only.",
        ),
    ])]
}
