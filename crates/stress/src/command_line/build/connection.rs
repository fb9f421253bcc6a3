//! The settings of servers and connections.

use super::{Built, SettingsBuilder};
use crate::command_line::groups::{
    graph_forms, jmx_forms, mode_forms, node_forms, port_forms, reporting_forms, sample_forms, schema_forms,
    transport_forms,
};
use crate::command_line::take_group;
use crate::compat::Compat;
use crate::settings::{
    Generation5Settings, GraphSettings, ModeSettings, NodeSettings, PortSettings, SchemaSettings, StressCommand,
    TransportSettings,
};

/// Maximum number of connections to a node or shard.
const CONNECTIONS_MAX: u32 = 1_024;
const SIMPLE_STRATEGY: &str = "org.apache.cassandra.locator.SimpleStrategy";

impl SettingsBuilder {
    pub(super) fn port(&mut self) -> Built<PortSettings> {
        let form = self.group("-port", &port_forms(self.compat))?;
        Ok(PortSettings {
            native: self.number::<i32>(form.text("native="))? as u32,
            jmx: self.number::<i32>(form.text("jmx="))? as u32,
            thrift: form.value("thrift=").map(|port| self.number::<i32>(port)).transpose()?.map(|port| port as u32),
        })
    }

    pub(super) fn mode(&mut self) -> Built<ModeSettings> {
        let is_5 = self.compat == Compat::V5;
        let parameters = take_group(&mut self.groups, "-mode");
        let is_given = parameters.is_some();
        let mut parameters = parameters.unwrap_or_else(|| {
            if is_5 { vec!["prepared".to_owned()] } else { vec!["cql3".to_owned(), "native".to_owned()] }
        });
        if is_5 {
            for name in parameters.extract_if(.., |name| name == "cql3" || name == "native") {
                self.warnings.push(format!("Warning ignoring deprecated parameter: {name}"));
            }
        }
        let form = self.select_form("-mode", "-mode", &mode_forms(self.compat), &parameters)?;
        if form.is_set("thrift") {
            return Err(self
                .refuse_group("-mode thrift is not supported: servers since 4.0 do not support Thrift")
                .with_hint("use -mode native cql3"));
        }
        let simple_native = form.is_set("simplenative");
        let prepared = if is_5 {
            if is_given && !form.is_set("prepared") && !form.is_set("unprepared") {
                self.warnings.push(
                    "-mode without prepared: the tool of 5.0 executes unprepared statements; here they are prepared \
                     unless you add unprepared"
                        .to_owned(),
                );
            }
            !form.is_set("unprepared")
        } else if simple_native {
            form.is_set("prepared")
        } else {
            !form.is_set("unprepared")
        };
        let protocol_version = match form.value("protocolVersion=") {
            None | Some("NEWEST_SUPPORTED") => None,
            Some(text) => {
                let version: i32 = self.number(text)?;
                let known = u8::try_from(version).ok().filter(|version| *version <= 5);
                let message = || self.refuse_group(format!("No protocol version matching integer version {version}"));
                Some(known.ok_or_else(message)?)
            }
        };
        let auth_provider = form.value("auth-provider=").map(str::to_owned);
        if let Some(class) = &auth_provider
            && class != "com.datastax.driver.core.PlainTextAuthProvider"
        {
            return Err(self
                .refuse_group(format!("Invalid auth provider class: {class}"))
                .with_hint("use user= and password=; classes of the Java driver are not loaded"));
        }
        let number = |prefix: &str| -> Built<Option<u32>> {
            let text = form.value(prefix).filter(|_| form.is_set(prefix));
            Ok(text.map(|text| self.number::<i32>(text)).transpose()?.map(|number| number as u32))
        };
        let count = |prefix: &str| match number(prefix)? {
            Some(count) if !(1..=CONNECTIONS_MAX).contains(&count) => {
                let message = format!("{prefix} must be a number from 1 to {CONNECTIONS_MAX}, got {count}");
                Err(self.refuse_group(message).with_hint("a connection carries up to 32,768 requests"))
            }
            count => Ok(count),
        };
        if form.is_set("connectionsPerHost=") && form.is_set("connectionsPerShard=") {
            return Err(
                self.refuse_group("can't have both connectionsPerHost and connectionsPerShard set, choose one.")
            );
        }
        Ok(ModeSettings {
            simple_native,
            prepared,
            protocol_version,
            compression: form.value("compression=").unwrap_or("none").to_ascii_lowercase(),
            user: form.value("user=").map(str::to_owned),
            password: form.value("password=").map(str::to_owned),
            auth_provider,
            max_pending_per_connection: number("maxPending=")?,
            connections_per_host: count("connectionsPerHost=")?,
            connections_per_shard: count("connectionsPerShard=")?,
            request_timeout_ms: number("requestTimeout=")?,
        })
    }

    pub(super) fn node(&mut self) -> Built<NodeSettings> {
        if take_group(&mut self.groups, "-cloudconf").is_some() {
            return Err(self
                .refuse_group("-cloudconf is not supported: it configures a driver of ScyllaDB Cloud")
                .with_hint("name the nodes with -node, and certificates with -transport truststore="));
        }
        let form = self.group("-node", &node_forms())?;
        Ok(NodeSettings {
            nodes: form.text("").split(',').map(str::to_owned).collect(),
            file: form.value("file=").map(str::to_owned),
            whitelist: form.is_set("whitelist"),
            datacenter: form.value("datacenter=").map(str::to_owned),
        })
    }

    pub(super) fn schema(&mut self, command: StressCommand) -> Built<SchemaSettings> {
        let group = self.groups.iter().find(|group| group.name == "-schema");
        if group.is_some() && command == StressCommand::User {
            return Err(self
                .refuse_group(
                    "-schema can only be provided with predefined operations insert, read, etc.; the 'user' command \
                     requires a schema yaml instead",
                )
                .with_hint("write keyspace_definition: and table_definition: in the profile"));
        }
        let is_ignored = group.is_some_and(|group| !group.parameters.is_empty()) && !command.creates_schema();
        let form = self.group("-schema", &schema_forms())?;
        if is_ignored {
            self.warnings
                .push(format!("-schema is ignored except for its keyspace: {} creates no tables", command.name()));
        }
        let strategy = form.inner_value("replication", "strategy=", false).unwrap_or(SIMPLE_STRATEGY).to_owned();
        let mut options = form.extra_values("replication");
        let has_factor = form.inner_value("replication", "factor=", true).is_some();
        if !options.iter().any(|(key, _)| key == "replication_factor") && (strategy == SIMPLE_STRATEGY || has_factor) {
            let factor = form.inner_value("replication", "factor=", false).unwrap_or("1");
            options.push(("replication_factor".to_owned(), factor.to_owned()));
        }
        Ok(SchemaSettings {
            keyspace: form.text("keyspace=").to_owned(),
            replication_strategy: strategy,
            replication_options: options,
            compression: form.value("compression=").map(str::to_owned),
            compaction_strategy: form.inner_value("compaction", "strategy=", false).map(str::to_owned),
            compaction_options: form.extra_values("compaction"),
        })
    }

    pub(super) fn transport(&mut self) -> Built<TransportSettings> {
        let form = self.group("-transport", &transport_forms(self.compat))?;
        let text = |prefix: &str| form.value(prefix).map(str::to_owned);
        Ok(TransportSettings {
            truststore: text("truststore="),
            truststore_password: text("truststore-password="),
            keystore: text("keystore="),
            keystore_password: text("keystore-password="),
            protocol: form.text("ssl-protocol=").to_owned(),
            algorithm: text("ssl-alg="),
            ciphers: text("ssl-ciphers="),
            factory: text("factory="),
            store_type: text("store-type="),
            hostname_verification: matches!(
                form.text("hostname-verification=").to_ascii_lowercase().as_str(),
                "true" | "1"
            ),
        })
    }

    pub(super) fn generation_5(&mut self) -> Built<Generation5Settings> {
        let mut extras = Generation5Settings::default();
        if self.compat == Compat::V3_0 {
            self.group("-sample", &sample_forms())?;
        }
        if self.compat != Compat::V5 {
            return Ok(extras);
        }
        let jmx = self.group("-jmx", &jmx_forms())?;
        extras.jmx_user = jmx.value("user=").map(str::to_owned);
        extras.has_jmx_password = jmx.is_set("password=");
        if let Some(parameters) = take_group(&mut self.groups, "-credentials-file") {
            let [file] = parameters.as_slice() else {
                return Err(self.refuse_group("-credentials-file takes the name of one file"));
            };
            extras.credentials_file = Some(file.clone());
        }
        let reporting = self.group("-reporting", &reporting_forms())?;
        let duration = |prefix: &str| match reporting.value(prefix) {
            Some(text) => match parse_milliseconds(text) {
                Some(duration) => Ok(Some((text.to_owned(), duration))),
                None => Err(self
                    .refuse_group(format!("Invalid duration: {text}"))
                    .with_hint("write 500ms, 5s, 2m, 1h or 1d")),
            },
            None => Ok(None),
        };
        extras.output_frequency = duration("output-frequency=")?;
        extras.header_frequency = duration("header-frequency=")?;
        Ok(extras)
    }

    pub(super) fn graph(&mut self, command: StressCommand) -> Built<GraphSettings> {
        let parameters = take_group(&mut self.groups, "-graph");
        let operation = |text: Option<&str>| text.map_or_else(|| command.label(), str::to_owned);
        let Some(parameters) = parameters else {
            let revision = "unknown".to_owned();
            return Ok(GraphSettings { file: None, revision, title: None, operation: operation(None) });
        };
        let form = self.select_form("-graph", "-graph", &graph_forms(), &parameters)?;
        Ok(GraphSettings {
            file: form.value("file=").map(str::to_owned),
            revision: form.text("revision=").to_owned(),
            title: form.value("title=").map(str::to_owned),
            operation: operation(form.value("op=")),
        })
    }
}

/// Parses `500ms`, `5s`, `2m`, `1h` or `1d`.
fn parse_milliseconds(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    text[..text.len() - unit.len()].parse::<u64>().ok()?.checked_mul(factor)
}
