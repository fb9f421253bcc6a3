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
    /// Unexpected consequences of the settings, one per line.
    pub warnings: Vec<String>,
}

loadstone_load::named_variants! {
    /// A command that performs operations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "the names of cassandra-stress")]
    pub enum StressCommand {
        Read = "read",
        Write = "write",
        Mixed = "mixed",
        CounterWrite = "counter_write",
        CounterRead = "counter_read",
        User = "user",
    }
}

impl StressCommand {
    /// The command's name in upper case, as in the output.
    #[must_use]
    pub fn label(self) -> String {
        self.name().to_ascii_uppercase()
    }

    /// Whether the command creates its keyspace and tables.
    #[must_use]
    pub const fn creates_schema(self) -> bool {
        matches!(self, Self::Write | Self::CounterWrite)
    }

    /// Whether auto mode pauses for 15 s between the steps of this command.
    #[must_use]
    pub const fn is_update(self) -> bool {
        !matches!(self, Self::Read | Self::CounterRead)
    }
}

/// The condition that ends a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the options of cassandra-stress")]
pub enum RunLength {
    /// After this number of partitions; with 0, only the schema is created.
    Count(i64),
    /// After this time.
    Duration { amount: i64, unit: DurationUnit },
    /// When the relative standard error of the row rate has fallen to `target`, after at least `min` and at most `max`
    /// intervals.
    Uncertainty { target: f64, min: i32, max: i32 },
}

impl RunLength {
    /// The value of `n=`; −1 if it is not set, as in the tool.
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
    pub enum DurationUnit {
        Seconds = "SECONDS",
        Minutes = "MINUTES",
        Hours = "HOURS",
        Days = "DAYS",
    }
}

impl DurationUnit {
    /// The length of the unit in seconds.
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

/// When tables are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncate {
    /// Never.
    Never,
    /// After the warm-up.
    Once,
    /// Before each step of auto mode.
    Always,
}

/// A distribution, with the text that the settings block shows for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSpec {
    /// The text as the user wrote it, without the option's name.
    pub text: String,
    /// The parsed distribution.
    pub spec: Spec,
}

/// The command and the options that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandSettings {
    /// The command.
    pub command: StressCommand,
    /// The condition that ends the command.
    pub length: RunLength,
    /// Whether there is no warm-up.
    pub no_warmup: bool,
    /// When tables are emptied.
    pub truncate: Truncate,
    /// Consistency level in upper case, such as `LOCAL_ONE`. In the tool, `SERIAL` and `LOCAL_SERIAL` set only the
    /// level of conditional updates, and the driver's default applies to everything else.
    pub consistency: String,
    /// Consistency level of conditional updates (`serial-cl=`).
    pub serial_consistency: Option<String>,
    /// Length of a key in bytes.
    pub key_bytes: u32,
    /// Increments of counters.
    pub add: NamedSpec,
    /// The commands of `mixed` with their weights, in the order of the settings block: writes before reads.
    pub ratios: Vec<(StressCommand, f64)>,
    /// Number of consecutive operations of one kind in `mixed` and `user`.
    pub clustering: Option<NamedSpec>,
    /// The profiles and operations of `user`.
    pub user: Option<UserSettings>,
}

/// The settings of the command `user`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserSettings {
    /// The files of the profiles.
    pub profiles: Vec<String>,
    /// The names of the operations and their weights.
    pub operations: Vec<(String, f64)>,
}

impl UserSettings {
    /// Whether all operations are inserts.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.operations.iter().all(|(name, _)| name == "insert" || name.ends_with(".insert"))
    }
}

/// The settings of `-rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the options of cassandra-stress")]
pub enum RateSettings {
    /// A fixed number of clients.
    Threads { threads: u32, limit: Limit },
    /// Steps with an increasing number of clients; with `auto`, until the throughput no longer grows.
    Steps { auto: bool, min_threads: u32, max_threads: u32 },
}

/// A target rate in partitions per second, over all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit: as fast as possible.
    None,
    /// `throttle=` (in 3.0, `limit=`): the printed latency is the service time.
    Throttle(u32),
    /// `fixed=`: the printed latency is the response time.
    Fixed(u32),
}

impl Limit {
    /// The number of partitions per second; 0 if there is no limit.
    #[must_use]
    pub const fn per_second(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Throttle(rate) | Self::Fixed(rate) => rate,
        }
    }
}

/// Order of the rows within a partition. In the predefined tables, a partition has only one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of cassandra-stress")]
pub enum Order {
    Arbitrary,
    Shuffled,
    Sorted,
}

/// The settings of `-pop`.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationSettings {
    /// The selection of partitions.
    pub selection: Selection,
    /// Order of the rows within a partition (`contents=`).
    pub order: Order,
    /// The share of a sequence (`segment=k/n`, an extension to the tool).
    pub share: Option<Share>,
}

/// The settings of `-insert`.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertSettings {
    /// The distribution that chooses which partly written partition is continued. Since 4.0, the size of its range
    /// determines all keys.
    pub revisit: Spec,
    /// Number of operations in which a partition is written; a partition of the predefined tables needs only one.
    pub visits: Spec,
    /// Number of partitions in a batch. The predefined commands write one partition at a time.
    pub partitions: Option<Spec>,
    /// Share of a partition's rows that are written.
    pub select_ratio: Option<RatioSpec>,
    /// Share of a row's columns that are not null.
    pub row_population_ratio: RatioSpec,
    /// `UNLOGGED`, `LOGGED` or `COUNTER`.
    pub batch_type: Option<String>,
}

/// The settings of `-col`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSettings {
    /// Column names, sorted by their bytes.
    pub names: Vec<String>,
    /// Number of columns in a row; `None` with `names=`.
    pub count: Option<Spec>,
    /// Length of a value in bytes.
    pub size: Spec,
    /// Whether reads select `*`.
    pub slice: bool,
    /// The comparator, which is only printed in the settings block.
    pub comparator: String,
    /// Timestamp of all writes in microseconds, as a string of digits.
    pub timestamp: Option<String>,
}

/// Default mean pause between two tries, ms. The tool retries at once, which floods an overloaded server
/// (CASSANDRA-7821).
const PAUSE_MS: u32 = 50;
/// Default maximum pause between two tries, ms.
const DELAY_MS_MAX: u32 = 20_000;

loadstone_load::named_variants! {
    /// How the pauses between the tries of an operation grow, as in ScyllaDB's fork.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DelayPolicy {
        /// All pauses have the minimum length.
        Constant = "constant",
        /// Pauses grow in equal steps from the minimum towards the maximum.
        Linear = "linear",
        /// Each pause is twice as long as the preceding pause.
        Exponential = "exponential",
    }
}

/// `-errors`. The delays are from ScyllaDB's fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSettings {
    /// Whether the run continues after a failed operation.
    pub ignore: bool,
    /// Maximum number of tries per operation: `retries=` + 1.
    pub tries: u32,
    /// Whether the rows read are not compared with the rows written.
    pub skip_read_validation: bool,
    /// How pauses grow.
    pub delay_policy: DelayPolicy,
    /// Minimum pause between two tries, ms; 0 if no pause is configured.
    pub min_delay_ms: u32,
    /// Maximum pause between two tries, ms.
    pub max_delay_ms: u32,
}

impl ErrorSettings {
    /// Whether pauses between tries are configured.
    #[must_use]
    pub fn has_delays(&self) -> bool {
        self.delay_policy != DelayPolicy::Constant || self.min_delay_ms > 0 || self.max_delay_ms != DELAY_MS_MAX
    }

    /// Minimum pause between two tries, ms. For constant pauses without a configured minimum, this is the default mean
    /// pause, limited to the maximum pause.
    #[must_use]
    pub fn pause_ms(&self) -> u32 {
        match self.delay_policy {
            DelayPolicy::Constant if self.min_delay_ms == 0 => PAUSE_MS.min(self.max_delay_ms),
            _ => self.min_delay_ms,
        }
    }
}

loadstone_load::named_variants! {
    /// The level of output.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[allow(missing_docs, reason = "the names of cassandra-stress")]
    pub enum LogLevel {
        Minimal = "MINIMAL",
        Normal = "NORMAL",
        Verbose = "VERBOSE",
    }
}

/// The settings of `-log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Whether the results at the end are omitted.
    pub no_summary: bool,
    /// Whether the settings block is omitted.
    pub no_settings: bool,
    /// A file to which the output is also written.
    pub file: Option<String>,
    /// A file for histograms.
    pub hdr_file: Option<String>,
    /// Length of an interval in ms, at least 1.
    pub interval_ms: u32,
    /// The level of output.
    pub level: LogLevel,
}

/// The settings of `-tokenrange`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRangeSettings {
    /// Whether ranges are reused.
    pub wrap: bool,
    /// Number of parts into which each range is split.
    pub split_factor: u32,
}

/// Options of this front end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontEndSettings {
    /// `--explain`: describe the run without performing it.
    pub explain: bool,
    /// `--print-spec`: print the trial without running it.
    pub print_spec: bool,
}

/// Default of `-reporting output-frequency=`, ms.
const FREQUENCY_MS: u64 = 1_000;
/// The consistency level of conditional updates without `serial-cl=`, which is the server's default.
const SERIAL: &str = "SERIAL";
/// Default of `clustering=` in `mixed`.
const CLUSTERING: &str = "GAUSSIAN(1..10)";

impl Settings {
    /// Length of an interval in the output, ms: the longer of `-log interval=` and `-reporting output-frequency=`. The
    /// default frequency does not lengthen a shorter interval.
    #[must_use]
    pub fn interval_ms(&self) -> u64 {
        let frequency = self.extras.output_frequency.as_ref().map_or(0, |(_, frequency_ms)| *frequency_ms);
        u64::from(self.log.interval_ms).max(if frequency == FREQUENCY_MS { 0 } else { frequency })
    }

    /// The consistency level of all statements except conditional updates. In the tool, `SERIAL` and `LOCAL_SERIAL` set
    /// only the level of conditional updates, and the driver's default applies to all other statements.
    #[must_use]
    pub fn level(&self) -> &str {
        match self.command.consistency.as_str() {
            "SERIAL" | "LOCAL_SERIAL" => "LOCAL_ONE",
            level => level,
        }
    }

    /// The options that have an effect in the tool but not here, each with the consequence of ignoring it.
    pub(crate) fn list_ignored_options(&self) -> Vec<String> {
        let serial = self.command.serial_consistency.as_deref().unwrap_or(&self.command.consistency);
        let transport = &self.transport;
        let options = [
            (
                self.mode.max_pending_per_connection.is_some(),
                "-mode maxPending= has no effect: a connection carries up to 32,768 requests",
            ),
            (
                self.command.command == StressCommand::Mixed
                    && self.command.clustering.as_ref().is_some_and(|own| !own.text.eq_ignore_ascii_case(CLUSTERING)),
                "clustering= has no effect: the shares of the operations are exact, and their order is random",
            ),
            (
                self.population.share.is_some() && matches!(self.population.selection, Selection::Distribution(_)),
                "-pop segment= has no effect on a distribution: every process draws from all of it; only seq= can be divided",
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

    /// The kinds of operations with their weights; empty for `user`.
    #[must_use]
    pub fn operations(&self) -> Vec<(StressCommand, f64)> {
        match self.command.command {
            StressCommand::Mixed => self.command.ratios.clone(),
            StressCommand::User => Vec::new(),
            command => vec![(command, 1.0)],
        }
    }

    /// Number of operations in the warm-up of each kind: for each contact point, a quarter of `n`, but at most 50,000
    /// operations; without `n`, 50,000. With `no-warmup`, 0.
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

/// Formats a command as its name in the output.
impl fmt::Display for StressCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}
