//! Settings from groups of options, in the tool's order, so that the first of several mistakes is reported as it reports it.

use std::collections::VecDeque;

use super::groups::{
    basic_forms, column_forms, error_forms, graph_forms, insert_forms, jmx_forms, log_forms, mixture_forms, mode_forms,
    node_forms, population_forms, port_forms, rate_forms, reporting_forms, sample_forms, schema_forms,
    token_range_forms, transport_forms,
};
use super::help::{SEND_TO_HELP, find_command};
use super::option::{Form, list_options, render_forms, select_form};
use super::{Group, UsageError, refuse, take_group};
use crate::compat::Compat;
use crate::distribution::{RatioSpec, Spec, parse_count, parse_integer, split_range};
use crate::population::{Population, Selection, Share, is_single_partition, seed_multiplier};
use crate::settings::{
    ColumnSettings, Command, CommandSettings, DelayPolicy, ErrorSettings, FrontEndSettings, Generation5Settings,
    GraphSettings, InsertSettings, Length, Limit, LogLevel, LogSettings, ModeSettings, NamedSpec, NodeSettings, Order,
    PopulationSettings, PortSettings, RateSettings, SchemaSettings, Settings, TimeUnit, TokenRangeSettings,
    TransportSettings, Truncate,
};

/// More columns than any table has; the tool makes a list of their names.
const COLUMNS_MAX: i64 = 65_535;
/// Bytes of a row that are generated at once.
const ROW_BYTES_MAX: i64 = 1 << 31;
const SIMPLE_STRATEGY: &str = "org.apache.cassandra.locator.SimpleStrategy";

type Built<T> = Result<T, UsageError>;

struct Builder {
    groups: VecDeque<Group>,
    compat: Compat,
    warnings: Vec<String>,
}

pub(super) fn build_settings(groups: VecDeque<Group>, compat: Compat) -> Built<Settings> {
    let mut builder = Builder { groups, compat, warnings: Vec::new() };
    let command = builder.command()?;
    builder.refuse_send_to()?;
    let port = builder.port()?;
    let rate = builder.rate(&command)?;
    let population = builder.population(&command)?;
    let token_range = builder.token_range()?;
    let insert = builder.insert()?;
    let columns = builder.columns()?;
    let errors = builder.errors()?;
    let log = builder.log()?;
    let mode = builder.mode()?;
    let node = builder.node()?;
    let schema = builder.schema(command.command)?;
    let transport = builder.transport()?;
    let extras = builder.generation_5()?;
    let graph = builder.graph(command.command)?;
    builder.refuse_rest()?;
    let mut settings = Settings {
        compat,
        command,
        rate,
        population,
        insert,
        columns,
        errors,
        log,
        mode,
        node,
        schema,
        transport,
        port,
        graph,
        token_range,
        extras,
        front_end: FrontEndSettings::default(),
        warnings: builder.warnings,
    };
    check_settings(&mut settings).map_err(|(message, hint)| refuse(message, compat).with_hint(hint))?;
    Ok(settings)
}

impl Builder {
    fn refuse(&self, message: impl std::fmt::Display) -> UsageError {
        refuse(message, self.compat)
    }

    /// The form of a group that the user chose; the last of `forms` without parameters.
    fn select(&self, name: &str, label: &str, forms: &[Form], parameters: &[String]) -> Built<Form> {
        let hint = format!("{name} accepts {}", list_options(forms));
        match select_form(parameters, forms.to_vec()) {
            Ok(Some(form)) => Ok(form),
            Ok(None) => Err(UsageError {
                text: format!(
                    "{}Invalid {label} options provided, see output for valid options\n",
                    render_forms(name, forms)
                ),
                hint: Some(hint),
                exit: 1,
            }),
            Err(message) => {
                let error = self.refuse(&message);
                Err(if message.starts_with("Invalid parameter ") { error.with_hint(hint) } else { error })
            }
        }
    }

    /// The form of a group without alternatives, with its defaults if it is not given.
    fn group(&mut self, name: &str, forms: &[Form]) -> Built<Form> {
        let parameters = take_group(&mut self.groups, name).unwrap_or_default();
        self.select(name, name, forms, &parameters)
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Built<T> {
        parse_integer(text).map_err(|message| self.refuse(message))
    }

    fn count(&self, text: &str) -> Built<i64> {
        parse_count(text).map_err(|message| self.refuse(message))
    }

    fn spec(&self, form: &Form, prefix: &str) -> Built<Spec> {
        form.spec(prefix).map_err(|message| self.refuse(message))
    }

    fn parse_named(&self, form: &Form, prefix: &str) -> Built<NamedSpec> {
        Ok(NamedSpec { text: form.text(prefix).to_owned(), spec: self.spec(form, prefix)? })
    }

    fn optional_spec(&self, form: &Form, prefix: &str) -> Built<Option<Spec>> {
        form.optional_spec(prefix).map_err(|message| self.refuse(message))
    }

    fn optional_ratio(&self, form: &Form, prefix: &str) -> Built<Option<RatioSpec>> {
        form.optional_ratio(prefix).map_err(|message| self.refuse(message))
    }

    fn command(&mut self) -> Built<CommandSettings> {
        let Some(group) = self.groups.front().cloned() else { return Err(self.refuse("No command specified")) };
        if group.name == "user" {
            return Err(self
                .refuse("user profiles are not supported yet")
                .with_hint("use write, read, mixed, counter_write or counter_read"));
        }
        let Some(command) = find_command(&group.name) else {
            let hint = "the first argument is the command: write, read, mixed, counter_write, counter_read, print, help, version";
            return Err(self.refuse("No command specified").with_hint(hint));
        };
        self.groups.pop_front();
        let forms = match command {
            Command::Mixed => mixture_forms(self.compat),
            _ => basic_forms(self.compat, false),
        };
        let form = match self.select(command.name(), command.label(), &forms, &group.parameters) {
            // The tool's help of these commands omits two options.
            Err(error) if command != Command::Mixed && error.text.starts_with("\nUsage") => {
                let help = render_forms(command.name(), &basic_forms(self.compat, true));
                let label = command.label();
                let text = format!("{help}Invalid {label} options provided, see output for valid options\n");
                return Err(UsageError {
                    text,
                    hint: Some("n=, duration= and err< exclude each other".to_owned()),
                    ..error
                });
            }
            other => other?,
        };
        let length = self.length(&form)?;
        let is_mixed = command == Command::Mixed;
        let add = self.parse_named(&form, "add=")?;
        let key_bytes = self.number::<i32>(form.text("keysize="))? as u32;
        let clustering = if is_mixed { Some(self.parse_named(&form, "clustering=")?) } else { None };
        let ratios = if is_mixed { self.ratios(&form)? } else { Vec::new() };
        Ok(CommandSettings {
            command,
            length,
            no_warmup: form.is_set("no-warmup"),
            truncate: match form.text("truncate=").to_ascii_lowercase().as_str() {
                "once" => Truncate::Once,
                "always" => Truncate::Always,
                _ => Truncate::Never,
            },
            consistency: form.text("cl=").to_ascii_uppercase(),
            serial_consistency: form.value("serial-cl=").map(str::to_ascii_uppercase),
            key_bytes,
            add,
            ratios,
            clustering,
        })
    }

    fn length(&self, form: &Form) -> Built<Length> {
        if form.has("n=") {
            return Ok(Length::Count(self.count(form.text("n="))?));
        }
        if form.has("duration=") {
            let text = form.text("duration=");
            let (digits, unit) = text.split_at(text.len().saturating_sub(1));
            let unit = match unit.to_ascii_lowercase().as_str() {
                "m" => TimeUnit::Minutes,
                "h" => TimeUnit::Hours,
                "d" => TimeUnit::Days,
                _ => TimeUnit::Seconds,
            };
            return Ok(Length::Duration { amount: self.number(digits)?, unit });
        }
        Ok(Length::Uncertainty {
            target: form.text("err<").parse().unwrap_or(0.02),
            min: self.number(form.text("n>"))?,
            max: self.number(form.text("n<"))?,
        })
    }

    /// In the order of the settings block: writes before reads.
    fn ratios(&mut self, form: &Form) -> Built<Vec<(Command, f64)>> {
        let mut ratios = Vec::new();
        for (prefix, weight) in form.inner_values("ratio") {
            let Some(command) = find_command(prefix.trim_end_matches('=')) else {
                return Err(self
                    .refuse("user profiles are not supported yet")
                    .with_hint("ratio() takes read, write, counter_read and counter_write"));
            };
            let weight: f64 = weight.parse().unwrap_or(0.0);
            if !weight.is_finite() {
                return Err(self.refuse(format!("Invalid value {weight} of {prefix}")));
            }
            ratios.push((command, weight));
        }
        ratios.sort_by_key(|(command, _)| match command {
            Command::Write | Command::Mixed => 0,
            Command::Read => 1,
            Command::CounterWrite => 2,
            Command::CounterRead => 3,
        });
        Ok(ratios)
    }

    fn refuse_send_to(&mut self) -> Built<()> {
        let parameters = take_group(&mut self.groups, "-send-to").or_else(|| take_group(&mut self.groups, "-sendto"));
        let Some(parameters) = parameters else { return Ok(()) };
        if parameters.len() != 1 {
            let text = format!("{SEND_TO_HELP}Invalid -sendto specifier: [{}]\n", parameters.join(", "));
            return Err(UsageError { text, hint: None, exit: 1 });
        }
        Err(self
            .refuse("-sendto is not supported: stressd speaks Java serialisation (removed in 5.0, CASSANDRA-17535)")
            .with_hint("run the command on each host, with -pop seq=A..B segment=k/n for a share of the partitions"))
    }

    fn port(&mut self) -> Built<PortSettings> {
        let form = self.group("-port", &port_forms(self.compat))?;
        Ok(PortSettings {
            native: self.number::<i32>(form.text("native="))? as u32,
            jmx: self.number::<i32>(form.text("jmx="))? as u32,
            thrift: form.value("thrift=").map(|port| self.number::<i32>(port)).transpose()?.map(|port| port as u32),
        })
    }

    fn rate(&mut self, command: &CommandSettings) -> Built<RateSettings> {
        let Some(parameters) = take_group(&mut self.groups, "-rate") else {
            return Ok(if command.command.creates_schema() && command.length.count() > 0 {
                RateSettings::Threads { threads: 200, limit: Limit::None }
            } else {
                RateSettings::Steps { auto: true, min_threads: 4, max_threads: 1_000 }
            });
        };
        let form = self.select("-rate", "-rate", &rate_forms(self.compat), &parameters)?;
        if !form.has("threads=") {
            return Ok(RateSettings::Steps {
                auto: form.is_set("auto"),
                min_threads: self.number::<i32>(form.text("threads>="))? as u32,
                max_threads: self.number::<i32>(form.text("threads<="))? as u32,
            });
        }
        let threads = self.number::<i32>(form.text("threads="))? as u32;
        let rate = |prefix: &str| match form.value(prefix) {
            Some(text) => self.number::<i32>(&text[..text.len() - 2]).map(|rate| rate as u32),
            None => Ok(0),
        };
        let (limit, throttle, fixed) = (rate("limit=")?, rate("throttle=")?, rate("fixed=")?);
        if throttle != 0 && fixed != 0 {
            return Err(self.refuse("can't have both fixed and throttle set, choose one."));
        }
        let limit = match (fixed, throttle.max(limit)) {
            (0, 0) => Limit::None,
            (0, throttle) => Limit::Throttle(throttle),
            (fixed, _) => Limit::Fixed(fixed),
        };
        Ok(RateSettings::Threads { threads, limit })
    }

    fn population(&mut self, command: &CommandSettings) -> Built<PopulationSettings> {
        let count = command.length.count();
        let limit = if count <= 0 { 1_000_000 } else { count };
        let Some(parameters) = take_group(&mut self.groups, "-pop") else {
            let selection = if command.command.creates_schema() {
                Selection::Sequence { first: 1, last: limit, wrap: true, read_lookback: None }
            } else {
                let spec = crate::distribution::parse_spec(&format!("gaussian(1..{limit})"));
                Selection::Distribution(spec.map_err(|message| self.refuse(message))?)
            };
            return Ok(PopulationSettings { selection, order: Order::Arbitrary, share: None });
        };
        // A default of its help, which says N, must not be printed with a number.
        let forms = population_forms(&limit.to_string());
        let form = self.select("-pop", "-pop", &forms, &parameters).map_err(|mut error| {
            let (numbers, letters) = (population_forms(&limit.to_string()), population_forms("N"));
            error.text = error.text.replace(&render_forms("-pop", &numbers), &render_forms("-pop", &letters));
            error
        })?;
        let order = match form.value("contents=").map(str::to_ascii_lowercase).as_deref() {
            Some("sorted") => Order::Sorted,
            Some(_) => Order::Shuffled,
            None => Order::Arbitrary,
        };
        let selection = if form.has("seq=") {
            let (first, last) = split_range(form.text("seq=")).unwrap_or_default();
            Selection::Sequence {
                first: self.count(first)?,
                last: self.count(last)?,
                wrap: !form.is_set("no-wrap"),
                read_lookback: self.optional_spec(&form, "read-lookback=")?,
            }
        } else {
            Selection::Distribution(self.spec(&form, "dist=")?)
        };
        let share = match form.value("segment=").and_then(|share| share.split_once('/')) {
            Some((part, parts)) => Some(Share { part: self.number(part)?, parts: self.number(parts)? }),
            None => None,
        };
        Ok(PopulationSettings { selection, order, share })
    }

    fn token_range(&mut self) -> Built<TokenRangeSettings> {
        let form = self.group("-tokenrange", &token_range_forms())?;
        Ok(TokenRangeSettings {
            wrap: form.is_set("wrap"),
            split_factor: self.split_factor(form.text("split-factor="))?,
        })
    }

    fn split_factor(&self, text: &str) -> Built<u32> {
        let factor = self.count(text)?;
        i32::try_from(factor).map(|factor| factor as u32).map_err(|_| self.refuse(format!("Out of range: {factor}")))
    }

    fn insert(&mut self) -> Built<InsertSettings> {
        let form = self.group("-insert", &insert_forms())?;
        let visits = self.spec(&form, "visits=")?;
        let revisit = self.spec(&form, "revisit=")?;
        let full = RatioSpec { distribution: Spec::Fixed { value: 1 }, divisor: 1.0 };
        Ok(InsertSettings {
            revisit,
            visits,
            partitions: self.optional_spec(&form, "partitions=")?,
            select_ratio: self.optional_ratio(&form, "select-ratio=")?,
            row_population_ratio: self.optional_ratio(&form, "row-population-ratio=")?.unwrap_or(full),
            // The tool refuses lower case here although its pattern accepts it.
            batch_type: form.value("batchtype=").map(str::to_ascii_uppercase),
        })
    }

    fn columns(&mut self) -> Built<ColumnSettings> {
        let parameters = take_group(&mut self.groups, "-col");
        let mut forms = column_forms();
        if parameters.is_none() {
            forms.remove(0);
        }
        let form = self.select("-col", "-col", &forms, &parameters.unwrap_or_default())?;
        let size = self.spec(&form, "size=")?;
        let (names, count) = if form.has("names=") {
            (form.text("names=").trim_end_matches(',').split(',').map(str::to_owned).collect(), None)
        } else {
            let count = self.spec(&form, "n=")?;
            let max = count.range().map_err(|message| self.refuse(message))?.1;
            if max > COLUMNS_MAX {
                return Err(self.refuse(format!("-col n= has more than {COLUMNS_MAX} columns")));
            }
            ((0..max).map(|place| format!("C{place}")).collect::<Vec<_>>(), Some(count))
        };
        let mut names: Vec<String> = names;
        names.sort();
        Ok(ColumnSettings {
            names,
            count,
            size,
            slice: form.is_set("slice"),
            comparator: form.text("comparator=").to_owned(),
            timestamp: form.value("timestamp=").map(str::to_owned),
        })
    }

    fn errors(&mut self) -> Built<ErrorSettings> {
        let form = self.group("-errors", &error_forms())?;
        Ok(ErrorSettings {
            ignore: form.is_set("ignore"),
            tries: (self.number::<i32>(form.text("retries="))? as u32).saturating_add(1),
            skip_read_validation: form.is_set("skip-read-validation"),
            delay_policy: match form.text("delay-policy=").to_ascii_lowercase().as_str() {
                "linear" => DelayPolicy::Linear,
                "exponential" => DelayPolicy::Exponential,
                _ => DelayPolicy::Constant,
            },
            min_delay_ms: self.number::<i32>(form.text("min-delay-ms="))? as u32,
            max_delay_ms: self.number::<i32>(form.text("max-delay-ms="))? as u32,
        })
    }

    fn log(&mut self) -> Built<LogSettings> {
        let form = self.group("-log", &log_forms())?;
        let interval = form.text("interval=");
        let interval_ms = if let Some(digits) = interval.strip_suffix("ms") {
            self.number::<i32>(digits)?
        } else {
            let seconds = self.number::<i32>(interval.strip_suffix('s').unwrap_or(interval))?;
            seconds.checked_mul(1_000).ok_or_else(|| self.refuse(format!("Log interval of {interval} is too long")))?
        };
        if interval_ms <= 0 {
            return Err(self.refuse("Log interval must be greater than zero"));
        }
        Ok(LogSettings {
            no_summary: form.is_set("no-summary"),
            no_settings: form.is_set("no-settings"),
            file: form.value("file=").map(str::to_owned),
            hdr_file: form.value("hdrfile=").map(str::to_owned),
            interval_ms: interval_ms as u32,
            level: match form.text("level=").to_ascii_lowercase().as_str() {
                "minimal" => LogLevel::Minimal,
                "verbose" => LogLevel::Verbose,
                _ => LogLevel::Normal,
            },
        })
    }

    fn mode(&mut self) -> Built<ModeSettings> {
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
        let form = self.select("-mode", "-mode", &mode_forms(self.compat), &parameters)?;
        if form.is_set("thrift") {
            return Err(self
                .refuse("-mode thrift is not supported: servers since 4.0 have no Thrift")
                .with_hint("use -mode native cql3"));
        }
        let simple_native = form.is_set("simplenative");
        let prepared = if is_5 {
            if is_given && !form.is_set("prepared") && !form.is_set("unprepared") {
                self.warnings.push(
                    "-mode without prepared: the tool of 5.0 then runs unprepared statements; here they are prepared \
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
                let message = || self.refuse(format!("No protocol version matching integer version {version}"));
                Some(known.ok_or_else(message)?)
            }
        };
        let auth_provider = form.value("auth-provider=").map(str::to_owned);
        if let Some(class) = &auth_provider
            && class != "com.datastax.driver.core.PlainTextAuthProvider"
        {
            return Err(self
                .refuse(format!("Invalid auth provider class: {class}"))
                .with_hint("use user= and password=; classes of the Java driver are not loaded"));
        }
        let number = |prefix: &str, default: &str| self.number::<i32>(form.value(prefix).unwrap_or(default));
        if form.is_set("connectionsPerHost=") && form.is_set("connectionsPerShard=") {
            return Err(self.refuse("can't have both connectionsPerHost and connectionsPerShard set, choose one."));
        }
        let password = form.value("password=").map(str::to_owned);
        Ok(ModeSettings {
            simple_native,
            prepared,
            protocol_version,
            compression: form.value("compression=").unwrap_or("none").to_ascii_lowercase(),
            user: form.value("user=").map(str::to_owned),
            has_password: password.is_some(),
            password,
            auth_provider,
            max_pending_per_connection: number("maxPending=", "128")? as u32,
            connections_per_host: number("connectionsPerHost=", "8")? as u32,
            connections_per_shard: match form.value("connectionsPerShard=") {
                Some(text) => Some(self.number::<i32>(text)? as u32),
                None => None,
            },
            request_timeout_ms: number("requestTimeout=", "12000")? as u32,
        })
    }

    fn node(&mut self) -> Built<NodeSettings> {
        if take_group(&mut self.groups, "-cloudconf").is_some() {
            return Err(self
                .refuse("-cloudconf is not supported: it configures a driver of ScyllaDB Cloud")
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

    fn schema(&mut self, command: Command) -> Built<SchemaSettings> {
        let is_given = self.groups.iter().any(|group| group.name == "-schema" && !group.parameters.is_empty());
        let form = self.group("-schema", &schema_forms())?;
        if is_given && !command.creates_schema() {
            self.warnings
                .push(format!("-schema is ignored except for its keyspace: {} creates no tables", command.name()));
        }
        let strategy = form.inner("replication", "strategy=", false).unwrap_or(SIMPLE_STRATEGY).to_owned();
        let mut options = form.extras("replication");
        let has_factor = form.inner("replication", "factor=", true).is_some();
        if !options.iter().any(|(key, _)| key == "replication_factor") && (strategy == SIMPLE_STRATEGY || has_factor) {
            let factor = form.inner("replication", "factor=", false).unwrap_or("1");
            options.push(("replication_factor".to_owned(), factor.to_owned()));
        }
        Ok(SchemaSettings {
            keyspace: form.text("keyspace=").to_owned(),
            replication_strategy: strategy,
            replication_options: options,
            compression: form.value("compression=").map(str::to_owned),
            compaction_strategy: form.inner("compaction", "strategy=", false).map(str::to_owned),
            compaction_options: form.extras("compaction"),
        })
    }

    fn transport(&mut self) -> Built<TransportSettings> {
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

    fn generation_5(&mut self) -> Built<Generation5Settings> {
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
                return Err(self.refuse("-credentials-file takes the name of one file"));
            };
            extras.credentials_file = Some(file.clone());
        }
        let reporting = self.group("-reporting", &reporting_forms())?;
        let duration = |prefix: &str| match reporting.value(prefix) {
            Some(text) => match parse_milliseconds(text) {
                Some(duration) => Ok(Some((text.to_owned(), duration))),
                None => {
                    Err(self.refuse(format!("Invalid duration: {text}")).with_hint("write 500ms, 5s, 2m, 1h or 1d"))
                }
            },
            None => Ok(None),
        };
        extras.output_frequency = duration("output-frequency=")?;
        extras.header_frequency = duration("header-frequency=")?;
        Ok(extras)
    }

    fn graph(&mut self, command: Command) -> Built<GraphSettings> {
        let parameters = take_group(&mut self.groups, "-graph");
        let operation = |text: Option<&str>| text.unwrap_or(command.label()).to_owned();
        let Some(parameters) = parameters else {
            let revision = "unknown".to_owned();
            return Ok(GraphSettings { file: None, revision, title: None, operation: operation(None) });
        };
        let form = self.select("-graph", "-graph", &graph_forms(), &parameters)?;
        Ok(GraphSettings {
            file: form.value("file=").map(str::to_owned),
            revision: form.text("revision=").to_owned(),
            title: form.value("title=").map(str::to_owned),
            operation: operation(form.value("op=")),
        })
    }

    fn refuse_rest(&self) -> Built<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let mut text = super::help::render_general(self.compat);
        text.push_str("Error processing command line arguments. The following were ignored:\n");
        for group in &self.groups {
            text.push_str(&group.name);
            for parameter in &group.parameters {
                text.push_str(&format!(" {parameter}"));
            }
            text.push('\n');
        }
        let name = self.groups.front().map_or("", |group| group.name.as_str());
        let hint =
            format!("{name} is not an option group of generation {}; -compat chooses another", self.compat.name());
        Err(UsageError { text, hint: Some(hint), exit: 1 })
    }
}

/// `500ms`, `5s`, `2m`, `1h`, `1d`.
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

/// Refuses arguments that the tool accepts before it ends with a stack trace; warns of its silent effects.
fn check_settings(settings: &mut Settings) -> Result<(), (String, String)> {
    let fail = |message: String, hint: &str| Err((message, hint.to_owned()));
    let range_hint = "write the smaller bound first";
    let Settings { command, population, insert, columns, compat, warnings, .. } = settings;
    let has_increments = command.command == Command::CounterWrite
        || command.ratios.iter().any(|(operation, _)| *operation == Command::CounterWrite);
    // Distributions without a use are accepted unseen, as in the tool.
    let specs = [
        ("add=", has_increments.then_some(&command.add.spec)),
        ("clustering=", command.clustering.as_ref().map(|named| &named.spec)),
        ("visits=", Some(&insert.visits)),
        ("row-population-ratio=", Some(&insert.row_population_ratio.distribution)),
    ];
    for (name, spec) in specs {
        if let Some(Err(message)) = spec.map(Spec::sampler) {
            return fail(format!("{name}: {message}"), range_hint);
        }
    }
    let multiplier = seed_multiplier(&insert.revisit, *compat)
        .map_err(|message| (message, "revisit= takes a range between 0 and 2147483646".to_owned()))?;
    if is_single_partition(multiplier) {
        warnings.push(format!(
            "-insert revisit={} has at most 1084 values: every partition has the same key, as in the tool (CASSANDRA-12744)",
            insert.revisit
        ));
    }
    let one_visit = insert.visits.is_fixed() && insert.visits.range().is_ok_and(|range| range.0 <= 1);
    if !one_visit {
        warnings.push("-insert visits= has no effect: a partition of the predefined tables is one row".to_owned());
    }
    if insert.partitions.is_some() || insert.select_ratio.is_some() || insert.batch_type.is_some() {
        warnings.push(
            "-insert partitions=, select-ratio= and batchtype= have no effect: the predefined commands write one row at a time"
                .to_owned(),
        );
    }
    if let Err(message) = Population::new(&population.selection, &insert.revisit, *compat, population.share, 0) {
        return fail(message, range_hint);
    }
    if command.command == Command::Mixed && command.ratios.iter().all(|(_, weight)| *weight <= 0.0) {
        return fail(
            "Must specify at least one command with a non-zero ratio".to_owned(),
            "write ratio(read=1,write=1)",
        );
    }
    if columns.count.as_ref().is_some_and(|count| !count.is_fixed()) {
        return fail(
            "Variable column counts are not implemented for CQL".to_owned(),
            "use -col n=fixed(N), with -insert row-population-ratio= for rows with nulls",
        );
    }
    let (least, greatest) =
        columns.size.range().map_err(|message| (format!("size=: {message}"), range_hint.to_owned()))?;
    let bytes = greatest.saturating_mul(columns.names.len().max(1) as i64).saturating_add(i64::from(command.key_bytes));
    if least < 0 || bytes > ROW_BYTES_MAX {
        return fail(
            format!("-col size= must give rows of 0 to {ROW_BYTES_MAX} bytes, got {least} to {bytes}"),
            "use smaller values",
        );
    }
    if command.consistency.ends_with("SERIAL") {
        warnings.push(format!(
            "cl={} sets only the level of conditional updates, as in the tool; the driver's default LOCAL_ONE holds for all else",
            command.consistency
        ));
    }
    Ok(())
}
