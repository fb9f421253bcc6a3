//! The settings block at the start of a run.

use super::messages::has_settings_block;
use crate::compat::Compat;
use crate::number::{format_count, format_decimals, format_double};
use crate::population::Selection;
use crate::settings::{
    CommandSettings, DelayPolicy, ErrorSettings, GraphSettings, InsertSettings, LogSettings, ModeSettings,
    NodeSettings, Order, PopulationSettings, RateSettings, RunLength, SchemaSettings, Settings, TransportSettings,
};

/// The block, followed by an empty line; empty for 3.0, which does not print it. With `-log no-settings`, the caller
/// omits it.
#[must_use]
pub fn render_settings(settings: &Settings) -> String {
    let Settings { compat, .. } = settings;
    if !has_settings_block(*compat) {
        return String::new();
    }
    let is_5 = *compat == Compat::V5;
    let mut block = Block(String::from("******************** Stress Settings ********************\n"));
    render_command(&mut block, &settings.command);
    render_rate(&mut block, &settings.rate);
    render_population(&mut block, &settings.population);
    render_insert(&mut block, &settings.insert);
    if settings.command.user.is_none() {
        render_columns(&mut block, settings);
    }
    block.section("Errors");
    block.line("Ignore", settings.errors.ignore);
    block.line("Tries", settings.errors.tries);
    render_delays(&mut block, &settings.errors);
    render_log(&mut block, &settings.log);
    render_mode(&mut block, &settings.mode, *compat);
    render_node(&mut block, &settings.node);
    let keyspace = settings.command.user.is_none().then_some(settings.schema.keyspace.as_str());
    render_schema(&mut block, keyspace, &settings.schema, *compat);
    render_transport(&mut block, &settings.transport, *compat);
    block.section("Port");
    block.line("Native Port", settings.port.native);
    if let Some(port) = settings.port.thrift {
        block.line("Thrift Port", port);
    }
    block.line("JMX Port", settings.port.jmx);
    if is_5 {
        block.section("JMX");
        block.line("Username", nullable(settings.extras.jmx_user.as_deref()));
        block.line("Password", if settings.extras.has_jmx_password { "*suppressed*" } else { "*not set*" });
    } else {
        block.section("Send To Daemon");
        block.0.push_str("  *not set*\n");
    }
    render_graph(&mut block, &settings.graph);
    block.section("TokenRange");
    block.line("Wrap", settings.token_range.wrap);
    block.line("Split Factor", settings.token_range.split_factor);
    if is_5 {
        render_generation_5(&mut block, settings);
    }
    block.0.push('\n');
    block.0
}

/// Text that consists of sections and lines.
struct Block(String);

impl Block {
    fn section(&mut self, name: &str) {
        self.0.push_str(&format!("{name}:\n"));
    }

    fn line(&mut self, label: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!("  {label}: {value}\n"));
    }
}

/// Java prints a missing object as `null`.
fn nullable(text: Option<&str>) -> &str {
    text.unwrap_or("null")
}

/// Formats a map as Java does: `{a=1, b=2}`.
fn render_map(entries: impl Iterator<Item = (impl std::fmt::Display, String)>) -> String {
    let entries: Vec<String> = entries.map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

fn render_command(block: &mut Block, command: &CommandSettings) {
    block.section("Command");
    block.line("Type", command.command.name());
    block.line("Count", format_count(command.length.count()));
    if let RunLength::Duration { amount, unit } = command.length {
        block.line("Duration", format!("{} {}", format_count(amount), unit.name()));
    }
    block.line("No Warmup", command.no_warmup);
    block.line("Consistency Level", &command.consistency);
    if let RunLength::Uncertainty { target, min, max } = command.length {
        block.line("Target Uncertainty", format_decimals(target, 3));
        block.line("Minimum Uncertainty Measurements", format_count(min));
        block.line("Maximum Uncertainty Measurements", format_count(max));
    } else {
        block.line("Target Uncertainty", "not applicable");
    }
    if let (Some(user), Some(clustering)) = (&command.user, &command.clustering) {
        let ratios = user.operations.iter().map(|(name, weight)| (name.as_str(), format_double(*weight)));
        block.line("Command Ratios", render_map(ratios));
        block.line("Command Clustering Distribution", format!("clustering={}", clustering.text));
        block.line("Profile File(s)", user.profiles.join(","));
        return;
    }
    block.line("Key Size (bytes)", command.key_bytes);
    // The misspelling in this label is the tool's.
    block.line("Counter Increment Distibution", format!("add={}", command.add.text));
    if let Some(clustering) = &command.clustering {
        let ratios = command.ratios.iter().map(|(kind, weight)| (kind.label(), format_double(*weight)));
        block.line("Command Ratios", render_map(ratios));
        block.line("Command Clustering Distribution", format!("clustering={}", clustering.text));
    }
}

fn render_rate(block: &mut Block, rate: &RateSettings) {
    block.section("Rate");
    match rate {
        RateSettings::Steps { auto: true, min_threads, max_threads } => {
            block.line("Auto", true);
            block.line("Min Threads", min_threads);
            block.line("Max Threads", max_threads);
        }
        RateSettings::Steps { auto: false, .. } => {
            block.line("Auto", false);
            block.line("Thread Count", -1);
            block.line("OpsPer Sec", 0);
        }
        RateSettings::Threads { threads, limit } => {
            block.line("Auto", false);
            block.line("Thread Count", threads);
            block.line("OpsPer Sec", limit.per_second());
        }
    }
}

fn render_population(block: &mut Block, population: &PopulationSettings) {
    block.section("Population");
    let wrap = match &population.selection {
        Selection::Distribution(spec) => {
            block.line("Distribution", spec);
            false
        }
        Selection::Sequence { first, last, wrap, read_lookback } => {
            block.line("Sequence", format!("{first}..{last}"));
            if let Some(spec) = read_lookback {
                block.line("Read Look Back", spec);
            }
            *wrap
        }
    };
    let order = match population.order {
        Order::Arbitrary => "ARBITRARY",
        Order::Shuffled => "SHUFFLED",
        Order::Sorted => "SORTED",
    };
    block.line("Order", order);
    block.line("Wrap", wrap);
}

fn render_insert(block: &mut Block, insert: &InsertSettings) {
    block.section("Insert");
    block.line("Revisits", &insert.revisit);
    block.line("Visits", &insert.visits);
    block.line("Row Population Ratio", &insert.row_population_ratio);
    // The tool prints the ratio only with partitions=, and exits with a stack trace if the ratio is then missing.
    if let Some(partitions) = &insert.partitions {
        block.line("Batchsize", partitions);
        if let Some(ratio) = &insert.select_ratio {
            block.line("Select Ratio", ratio);
        }
    }
    block.line("Batch Type", insert.batch_type.as_deref().unwrap_or("not batching"));
}

/// The delays, which only ScyllaDB's fork prints, and only if they are configured.
fn render_delays(block: &mut Block, errors: &ErrorSettings) {
    if errors.delay_policy == DelayPolicy::Constant && errors.min_delay_ms == 0 {
        return;
    }
    let delay = |ms: u32| format!("{} MILLISECONDS", format_count(u64::from(ms)));
    block.line("RetryPolicy", errors.delay_policy.name());
    block.line("Minimum Delay", delay(errors.min_delay_ms));
    if errors.delay_policy != DelayPolicy::Constant {
        block.line("Maximum Delay", delay(errors.max_delay_ms));
    }
}

fn render_columns(block: &mut Block, settings: &Settings) {
    let columns = &settings.columns;
    block.section("Columns");
    block.line("Max Columns Per Key", columns.names.len());
    block.line("Column Names", format!("[{}]", columns.names.join(", ")));
    block.line("Comparator", &columns.comparator);
    block.line("Timestamp", nullable(columns.timestamp.as_deref()));
    block.line("Variable Column Count", columns.count.as_ref().is_some_and(|count| !count.is_fixed()));
    block.line("Slice", columns.slice);
    block.line("Size Distribution", &columns.size);
    match &columns.count {
        Some(count) => block.line("Count Distribution", count),
        None => block.line("Count Distribution", format!("Count:  fixed={}", columns.names.len())),
    }
}

fn render_log(block: &mut Block, log: &LogSettings) {
    block.section("Log");
    block.line("No Summary", log.no_summary);
    block.line("No Settings", log.no_settings);
    block.line("File", nullable(log.file.as_deref()));
    block.line("Interval Millis", log.interval_ms);
    block.line("Level", log.level.name());
}

fn render_mode(block: &mut Block, mode: &ModeSettings, compat: Compat) {
    block.section("Mode");
    block.line("API", if mode.simple_native { "SIMPLE_NATIVE" } else { "JAVA_DRIVER_NATIVE" });
    block.line("Connection Style", if mode.prepared { "CQL_PREPARED" } else { "CQL" });
    if compat != Compat::V5 {
        block.line("CQL Version", "CQL3");
    }
    let newest = if compat == Compat::V5 { 5 } else { 4 };
    block.line("Protocol Version", format!("V{}", mode.protocol_version.unwrap_or(newest)));
    block.line("Username", nullable(mode.user.as_deref()));
    block.line("Password", if mode.password.is_some() { "*suppressed*" } else { "null" });
    // The misspelling in this label is the tool's.
    block.line("Auth Provide Class", nullable(mode.auth_provider.as_deref()));
    if mode.simple_native {
        block.line("Max Pending Per Connection", "null");
        block.line("Connections Per Host", "null");
    } else {
        block.line("Max Pending Per Connection", mode.count_pending());
        block.line("Connections Per Host", mode.count_connections());
    }
    block.line("Compression", mode.compression.to_ascii_uppercase());
}

fn render_node(block: &mut Block, node: &NodeSettings) {
    block.section("Node");
    block.line("Nodes", format!("[{}]", node.nodes.join(", ")));
    block.line("Is White List", node.whitelist);
    block.line("Datacenter", nullable(node.datacenter.as_deref()));
}

fn render_schema(block: &mut Block, keyspace: Option<&str>, schema: &SchemaSettings, compat: Compat) {
    let map =
        |options: &[(String, String)]| render_map(options.iter().map(|(key, value)| (key.as_str(), value.clone())));
    block.section("Schema");
    block.line("Keyspace", nullable(keyspace));
    block.line("Replication Strategy", &schema.replication_strategy);
    // The misspelling in this label is the tool's.
    let label = if compat == Compat::V3_11 { "Replication Strategy Pptions" } else { "Replication Strategy Options" };
    block.line(label, map(&schema.replication_options));
    block.line("Table Compression", nullable(schema.compression.as_deref()));
    block.line("Table Compaction Strategy", nullable(schema.compaction_strategy.as_deref()));
    block.line("Table Compaction Strategy Options", map(&schema.compaction_options));
}

/// Tools before 5.0 print passwords here; this function does not.
fn render_transport(block: &mut Block, transport: &TransportSettings, compat: Compat) {
    block.section("Transport");
    let secret = |password: &Option<String>| if password.is_some() { "*suppressed*" } else { "null" };
    let (truststore, keystore) = (nullable(transport.truststore.as_deref()), nullable(transport.keystore.as_deref()));
    let (truststore_password, keystore_password) =
        (secret(&transport.truststore_password), secret(&transport.keystore_password));
    let (algorithm, ciphers) = (nullable(transport.algorithm.as_deref()), nullable(transport.ciphers.as_deref()));
    if compat == Compat::V5 {
        block.line("Truststore", truststore);
        block.line("Truststore Password", truststore_password);
        block.line("Keystore", keystore);
        block.line("Keystore Password", keystore_password);
        block.line("SSL Protocol", &transport.protocol);
        block.line("SSL Algorithm", algorithm);
        block.line("SSL Ciphers", ciphers);
        return;
    }
    let factory = transport.factory.as_ref().map_or_else(String::new, |factory| format!("factory={factory}; "));
    let store = transport.store_type.as_ref().map_or_else(String::new, |store| format!("store-type={store}; "));
    block.0.push_str(&format!(
        "  {factory}truststore={truststore}; truststore-password={truststore_password}; keystore={keystore}; keystore-password={keystore_password}; ssl-protocol={}; ssl-alg={algorithm}; {store}ssl-ciphers={ciphers}; \n",
        transport.protocol
    ));
}

fn render_graph(block: &mut Block, graph: &GraphSettings) {
    block.section("Graph");
    block.line("File", nullable(graph.file.as_deref()));
    block.line("Revision", &graph.revision);
    block.line("Title", nullable(graph.title.as_deref()));
    block.line("Operation", &graph.operation);
}

fn render_generation_5(block: &mut Block, settings: &Settings) {
    const UNSET: &str = "*not set*";
    let extras = &settings.extras;
    block.section("Credentials file");
    block.line("File", extras.credentials_file.as_deref().unwrap_or(UNSET));
    for label in [
        "CQL username",
        "CQL password",
        "JMX username",
        "JMX password",
        "Transport truststore password",
        "Transport keystore password",
    ] {
        block.line(label, UNSET);
    }
    block.section("Reporting");
    let text =
        |frequency: &Option<(String, u64)>| frequency.as_ref().map_or(UNSET.to_owned(), |(text, _)| text.clone());
    block.line("Output frequency", text(&extras.output_frequency));
    block.line("Header frequency", text(&extras.header_frequency));
}

#[cfg(test)]
mod tests {
    use super::super::rows::samples::{READ, THROTTLED, WRITE};
    use super::*;
    use crate::command_line::{CommandLineRequest, parse};

    fn block(line: &str) -> String {
        match parse(&line.split(' ').collect::<Vec<_>>()).unwrap() {
            CommandLineRequest::Run(settings) => render_settings(&settings),
            CommandLineRequest::Print(text) => text,
        }
    }

    #[test]
    fn blocks_of_real_runs_are_reproduced() {
        for (sample, line) in [
            (
                WRITE,
                "write n=200000 cl=ONE -rate threads=20 -log interval=5s -schema replication(factor=2) -node 127.0.0.1",
            ),
            (
                THROTTLED,
                "write n=20000 cl=QUORUM no-warmup -rate threads=20 throttle=500/s -log interval=5s -schema replication(factor=3) -node 127.0.0.1",
            ),
            (READ, "read n=200000 cl=ONE no-warmup -rate threads=20 -log interval=5s -node 127.0.0.1"),
        ] {
            let rendered = block(line);
            assert_eq!(rendered, sample[..rendered.len()], "{line}");
            assert!(rendered.ends_with("Split Factor: 1\n\n"));
        }
    }

    #[test]
    fn generations_differ() {
        assert_eq!(block("write n=1 -compat 3.0"), "");
        let five = block("write n=1 -compat 5 -transport truststore=a truststore-password=secret");
        for line in [
            "JMX:\n  Username: null\n",
            "Credentials file:\n",
            "  Output frequency: 1s\n",
            "  Truststore Password: *suppressed*\n",
        ] {
            assert!(five.contains(line), "{line}");
        }
        assert!(!five.contains("CQL Version") && !five.contains("Send To Daemon"));
    }

    #[test]
    fn passwords_are_never_printed() {
        for compat in ["3.11", "4", "5"] {
            let text = block(&format!(
                "write n=1 -mode native cql3 user=me password=secret -transport truststore=a truststore-password=secret keystore-password=secret -compat {compat}"
            ));
            assert!(!text.contains("secret"), "{text}");
        }
    }
}
