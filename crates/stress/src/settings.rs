//! The settings of a run, as plain values.

mod connection;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use connection::DEFAULT_CIPHERS;
pub use connection::{
    Generation5Settings, GraphSettings, ModeSettings, NodeSettings, PortSettings, SchemaSettings, TransportSettings,
};

use crate::compat::Compat;
use crate::distribution::{RatioSpec, Spec};
use crate::population::{Selection, Share};

/// A run of cassandra-stress.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each field is the option group of its name")]
pub struct Settings {
    pub compat: Compat,
    pub command: CommandSettings,
    pub rate: RateSettings,
    pub population: PopulationSettings,
    pub insert: InsertSettings,
    pub columns: ColumnSettings,
    pub errors: ErrorSettings,
    pub log: LogSettings,
    pub mode: ModeSettings,
    pub node: NodeSettings,
    pub schema: SchemaSettings,
    pub transport: TransportSettings,
    pub port: PortSettings,
    pub graph: GraphSettings,
    pub token_range: TokenRangeSettings,
    pub extras: Generation5Settings,
    pub front_end: FrontEndSettings,
    /// Consequences that the user may not expect, one per line.
    pub warnings: Vec<String>,
}

loadstone_load::named_variants! {
    /// A command that performs operations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "the names of cassandra-stress")]
    pub enum Command {
        Read = "read",
        Write = "write",
        Mixed = "mixed",
        CounterWrite = "counter_write",
        CounterRead = "counter_read",
        User = "user",
    }
}

impl Command {
    /// The name in upper case, as in outputs.
    #[must_use]
    pub fn label(self) -> String {
        self.name().to_ascii_uppercase()
    }

    /// Whether the command creates its keyspace and tables.
    #[must_use]
    pub const fn creates_schema(self) -> bool {
        matches!(self, Self::Write | Self::CounterWrite)
    }

    /// Whether auto mode pauses 15 s between its steps.
    #[must_use]
    pub const fn updates(self) -> bool {
        !matches!(self, Self::Read | Self::CounterRead)
    }
}

/// The condition that ends a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the options of cassandra-stress")]
pub enum Length {
    /// After this number of partitions. 0: only the schema is created.
    Count(i64),
    /// After this time.
    Duration { amount: i64, unit: TimeUnit },
    /// When the relative standard error of the rate of rows is below `target`, after at least `min` and at most `max` intervals.
    Uncertainty { target: f64, min: i32, max: i32 },
}

impl Length {
    /// `n=`; −1 without it, as in the tool.
    #[must_use]
    pub const fn count(self) -> i64 {
        match self {
            Self::Count(count) => count,
            _ => -1,
        }
    }
}

loadstone_load::named_variants! {
    /// The unit of `duration=`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[allow(missing_docs, reason = "the names are the units")]
    pub enum TimeUnit {
        Seconds = "SECONDS",
        Minutes = "MINUTES",
        Hours = "HOURS",
        Days = "DAYS",
    }
}

impl TimeUnit {
    /// Length in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
        }
    }
}

/// The time at which tables are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncate {
    /// Not at all.
    Never,
    /// After the warm-up.
    Once,
    /// Before each step of auto mode.
    Always,
}

/// A distribution, with the text that the settings block repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSpec {
    /// The user's text, without the option's name.
    pub text: String,
    /// The parsed distribution.
    pub spec: Spec,
}

/// The command and its own options.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandSettings {
    /// Which command.
    pub command: Command,
    /// The condition that ends it.
    pub length: Length,
    /// Without warm-up.
    pub no_warmup: bool,
    /// The time at which tables are emptied.
    pub truncate: Truncate,
    /// Consistency level, in upper case: `LOCAL_ONE`. `SERIAL` and `LOCAL_SERIAL` set only the level of conditional updates in
    /// the tool, and the driver's default applies to everything else.
    pub consistency: String,
    /// Consistency level of conditional updates (`serial-cl=`).
    pub serial_consistency: Option<String>,
    /// Length of a key in bytes.
    pub key_bytes: u32,
    /// Increments of counters.
    pub add: NamedSpec,
    /// The commands of `mixed` with their weights, in the order of the settings block: writes before reads.
    pub ratios: Vec<(Command, f64)>,
    /// Number of consecutive operations of one kind in `mixed`.
    pub clustering: Option<NamedSpec>,
    /// The profiles and operations of `user`.
    pub user: Option<UserSettings>,
}

/// The command `user`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserSettings {
    /// The files of the profiles.
    pub profiles: Vec<String>,
    /// The names of the operations and their weights.
    pub operations: Vec<(String, f64)>,
}

impl UserSettings {
    /// Whether no operation reads.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.operations.iter().all(|(name, _)| name == "insert" || name.ends_with(".insert"))
    }
}

/// `-rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the options of cassandra-stress")]
pub enum RateSettings {
    /// A fixed number of clients.
    Threads { threads: u32, limit: Limit },
    /// Steps of a growing number of clients; `auto`: until the throughput no longer grows.
    Steps { auto: bool, min_threads: u32, max_threads: u32 },
}

/// A target rate in partitions per second, over all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// As fast as possible.
    None,
    /// `throttle=` (3.0: `limit=`): the printed latency is the service time.
    Throttle(u32),
    /// `fixed=`: the printed latency is the response time.
    Fixed(u32),
}

impl Limit {
    /// Partitions per second; 0 without a limit.
    #[must_use]
    pub const fn per_second(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Throttle(rate) | Self::Fixed(rate) => rate,
        }
    }
}

/// Order of the rows in a partition. In the predefined tables, a partition has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of cassandra-stress")]
pub enum Order {
    Arbitrary,
    Shuffled,
    Sorted,
}

/// `-pop`.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationSettings {
    /// Which partitions.
    pub selection: Selection,
    /// Order within a partition (`contents=`).
    pub order: Order,
    /// The share of a sequence (`segment=k/n`, an addition to the tool).
    pub share: Option<Share>,
}

/// `-insert`.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertSettings {
    /// The choice of the partly written partition to continue. Since 4.0 the size of its range determines all keys.
    pub revisit: Spec,
    /// Number of operations in which a partition is written. The predefined tables need one.
    pub visits: Spec,
    /// Number of partitions in a batch. The predefined commands write one partition at a time.
    pub partitions: Option<Spec>,
    /// Share of a partition's rows that is written.
    pub select_ratio: Option<RatioSpec>,
    /// Share of a row's columns that is not null.
    pub row_population_ratio: RatioSpec,
    /// `UNLOGGED`, `LOGGED` or `COUNTER`.
    pub batch_type: Option<String>,
}

/// `-col`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSettings {
    /// Names in the order of their bytes.
    pub names: Vec<String>,
    /// Number of columns of a row; `None` with `names=`.
    pub count: Option<Spec>,
    /// Length of a value in bytes.
    pub size: Spec,
    /// Whether reads select `*`.
    pub slice: bool,
    /// Stored for the settings block.
    pub comparator: String,
    /// Timestamp of all writes in microseconds, in digits.
    pub timestamp: Option<String>,
}

/// Mean pause between two tries by default, ms.
const PAUSE_MS: u32 = 50;
/// Maximum pause between two tries by default, ms.
const DELAY_MS_MAX: u32 = 20_000;

/// The growth of the pause between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of ScyllaDB's fork")]
pub enum DelayPolicy {
    Constant,
    Linear,
    Exponential,
}

/// `-errors`. The delays come from ScyllaDB's fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSettings {
    /// Whether the run continues after a failed operation.
    pub ignore: bool,
    /// Tries of an operation: `retries=` + 1.
    pub tries: u32,
    /// Whether the rows read are not compared.
    pub skip_read_validation: bool,
    /// The growth of pauses.
    pub delay_policy: DelayPolicy,
    /// Minimum pause between two tries, ms. 0: no pause configured.
    pub min_delay_ms: u32,
    /// Maximum pause, ms.
    pub max_delay_ms: u32,
}

impl ErrorSettings {
    /// Mean pause between two tries, ms. The tool retries at once, and so floods an overloaded server (CASSANDRA-7821).
    #[must_use]
    pub const fn pause_ms(&self) -> u32 {
        if self.min_delay_ms > 0 { self.min_delay_ms } else { PAUSE_MS }
    }
}

loadstone_load::named_variants! {
    /// The amount of output.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[allow(missing_docs, reason = "the names of cassandra-stress")]
    pub enum LogLevel {
        Minimal = "MINIMAL",
        Normal = "NORMAL",
        Verbose = "VERBOSE",
    }
}

/// `-log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Whether the results at the end are omitted.
    pub no_summary: bool,
    /// Whether the settings block is omitted.
    pub no_settings: bool,
    /// A file for a copy of the output.
    pub file: Option<String>,
    /// Histograms.
    pub hdr_file: Option<String>,
    /// Length of an interval in ms, at least 1.
    pub interval_ms: u32,
    /// The amount of output.
    pub level: LogLevel,
}

/// `-tokenrange`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRangeSettings {
    /// Whether ranges are reused.
    pub wrap: bool,
    /// Number of parts into which ranges are split.
    pub split_factor: u32,
}

/// Options of this front end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontEndSettings {
    /// `--explain`: describe the run and do nothing.
    pub explain: bool,
    /// `--print-spec`: print the trial and do nothing.
    pub print_spec: bool,
}

/// `-reporting output-frequency=` by default, ms.
const FREQUENCY_MS: u64 = 1_000;
/// The level of a conditional update without `serial-cl=`: the server's default.
const SERIAL: &str = "SERIAL";

impl Settings {
    /// Length of an interval of the output, ms: of `-log interval=` or `-reporting output-frequency=`, the longer. The
    /// default frequency does not lengthen a shorter interval.
    #[must_use]
    pub fn interval_ms(&self) -> u64 {
        let frequency = self.extras.output_frequency.as_ref().map_or(0, |(_, frequency_ms)| *frequency_ms);
        u64::from(self.log.interval_ms).max(if frequency == FREQUENCY_MS { 0 } else { frequency })
    }

    /// The level of all statements except conditional updates. In the tool, `SERIAL` and `LOCAL_SERIAL` set only the
    /// level of conditional updates, and the driver's default applies to all other statements.
    #[must_use]
    pub fn level(&self) -> &str {
        match self.command.consistency.as_str() {
            "SERIAL" | "LOCAL_SERIAL" => "LOCAL_ONE",
            level => level,
        }
    }

    /// The options that have an effect in the tool but not here, each with the consequence.
    pub(crate) fn list_ignored_options(&self) -> Vec<String> {
        let errors = &self.errors;
        let serial = self.command.serial_consistency.as_deref().unwrap_or(&self.command.consistency);
        let transport = &self.transport;
        let options = [
            (self.mode.compression != "none", "-mode compression= has no effect: requests are sent uncompressed"),
            (self.node.whitelist, "-node whitelist has no effect: the nodes of the data centre are used"),
            (
                errors.delay_policy != DelayPolicy::Constant || errors.max_delay_ms != DELAY_MS_MAX,
                "-errors delay-policy= and max-delay-ms= have no effect: min-delay-ms= sets the mean of all pauses",
            ),
            (
                serial.ends_with(SERIAL) && serial != SERIAL,
                "the level LOCAL_SERIAL has no effect: conditional updates run at the server's default, SERIAL",
            ),
            (
                transport.truststore.is_some() && (transport.protocol != "TLS" || transport.has_ciphers()),
                "-transport ssl-protocol= and ssl-ciphers= have no effect: TLS 1.2 and 1.3 with the ciphers of rustls",
            ),
        ];
        options.into_iter().filter(|(is_set, _)| *is_set).map(|(_, warning)| warning.to_owned()).collect()
    }

    /// The kinds of operations with their weights.
    #[must_use]
    pub fn operations(&self) -> Vec<(Command, f64)> {
        match self.command.command {
            Command::Mixed => self.command.ratios.clone(),
            Command::User => Vec::new(),
            command => vec![(command, 1.0)],
        }
    }

    /// Operations of the warm-up, for each kind: a quarter of `n`, at most 50,000 per contact point.
    ///
    /// Source: `StressAction.warmup`.
    #[must_use]
    pub fn warmup_operations(&self) -> u64 {
        if self.command.no_warmup {
            return 0;
        }
        let count = self.command.length.count();
        let iterations = if count >= 0 { ((count as f64 * 0.25) as i64).min(50_000) } else { 50_000 };
        iterations.max(0) as u64 * self.node.nodes.len() as u64
    }
}

/// The name of a command in outputs.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}
