//! What a time series workload is, and which settings cannot be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::Words;
use crate::core::Mix;
use crate::keys::KeyDistribution;
use crate::values::{Length, Lengths};

/// What YCSB takes `recordcount` for when it is 0.
const RECORDS_UNKNOWN: u64 = 2_147_483_647;
/// More time steps than this are not shuffled; YCSB's limit, too.
const SHUFFLED_STEPS_MAX: u64 = 1 << 24;

/// What a time series workload is. The properties that it comes from are named in each field's text; the default is
/// that of YCSB's code, which its shipped template does not always state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// One for one with YCSB's properties.
#[allow(clippy::struct_excessive_bools)]
pub struct TimeSeriesSpec {
    /// `table`.
    pub table: String,
    /// `recordcount`: points present before a run. None (or 0): unknown, which queries take for 2147483647.
    pub records: Option<u64>,
    /// `insertcount`: points that a load writes. None (or 0): as many as `records`.
    pub insert_count: Option<u64>,
    /// `operationcount`: operations of the run. None: no end of its own.
    pub operations: Option<u64>,
    /// `insertstart`: first timestamp; milliseconds or seconds since 1970, see `units`. Must be given here; where YCSB
    /// leaves it out, see [`TimeSeriesSpec::default_start`].
    pub start: Option<i64>,
    /// `fieldcount`: metrics, the keys of the series.
    pub key_count: u64,
    /// `fieldlength`: letters of a metric's name.
    pub key_length: usize,
    /// `tagcount`: tags of a series.
    pub tag_count: usize,
    /// `tagcardinality`: values of each tag; those missing are 1, those beyond `tag_count` are not used.
    pub tag_cardinality: Vec<u64>,
    /// `tagkeylength`: letters of a tag's name.
    pub tag_key_length: usize,
    /// `tagvaluelength`: letters of a tag's value.
    pub tag_value_length: usize,
    /// `timestampinterval`: from one point of a series to the next, in `units`.
    pub interval: u64,
    /// `timestampunits`.
    pub units: TimeUnit,
    /// `timestampkey`: name of the timestamp's field.
    pub timestamp_key: String,
    /// `valuekey`: name of the value's field.
    pub value_key: String,
    /// `tagpairdelimiter`: between a name and its value in queries and deletes.
    pub tag_pair_delimiter: String,
    /// `deletedelimiter`: between the parts of a delete's key.
    pub delete_delimiter: String,
    /// `randomwritetimestamporder`: time steps are written in shuffled order.
    pub random_time_order: bool,
    /// `randomtimeseriesorder`: the series of a time step are written in shuffled order.
    pub random_series_order: bool,
    /// `valuetype`.
    pub value_type: ValueType,
    /// `sparsity`: share of the points that is missing, 0 to 0.9999.
    pub sparsity: f64,
    /// `delayedseries`: share of the series whose points are late.
    pub delayed_series: f64,
    /// `delayedintervals`: a late series is 0 to this − 1 intervals late, by its number.
    pub delayed_intervals: u64,
    /// `querytimespan`: length of time that a query asks for, in the unit of timestamps; 0: one timestamp.
    pub query_span: u64,
    /// `queryrandomtimespan`: a query asks for 0 to `query_span` − 1 instead, in whole intervals.
    pub query_random_span: bool,
    /// `querytimespandelimiter`: between both ends of a query's time.
    pub query_span_delimiter: String,
    /// `groupbykey`: name of the group-by clause.
    pub group_by_key: String,
    /// `groupbyfunction` and `groupbykeys`.
    pub group_by: Option<GroupBy>,
    /// `downsamplingkey`: name of the downsampling clause.
    pub downsampling_key: String,
    /// `downsamplingfunction` and `downsamplinginterval`.
    pub downsampling: Option<Downsampling>,
    /// `dataintegrity`: values follow from tags and timestamp, and reads are checked.
    pub integrity: bool,
    /// The `…proportion` properties; `readmodifywriteproportion` must be 0.
    pub mix: Mix,
    /// `requestdistribution` of reads over the metrics: uniform, sequential, zipfian, hotspot (or true zipfian).
    pub keys: KeyDistribution,
    /// `maxscanlength` and `scanlengthdistribution`: how many points a scan asks for; the least is 1.
    pub scan_length: Length,
    /// How many deletes ahead of the newest a query or update stays, so that its point is still there (an extension).
    pub delete_lag: u64,
}

impl Default for TimeSeriesSpec {
    fn default() -> Self {
        Self {
            table: "usertable".to_owned(),
            records: None,
            insert_count: None,
            operations: None,
            start: None,
            key_count: 10,
            key_length: 100,
            tag_count: 4,
            tag_cardinality: vec![1, 2, 4, 8],
            tag_key_length: 8,
            tag_value_length: 8,
            interval: 60,
            units: TimeUnit::Seconds,
            timestamp_key: "YCSBTS".to_owned(),
            value_key: "YCSBV".to_owned(),
            tag_pair_delimiter: "=".to_owned(),
            delete_delimiter: ":".to_owned(),
            random_time_order: false,
            random_series_order: true,
            value_type: ValueType::Floats,
            sparsity: 0.0,
            delayed_series: 0.1,
            delayed_intervals: 5,
            query_span: 0,
            query_random_span: false,
            query_span_delimiter: ",".to_owned(),
            group_by_key: "YCSBGB".to_owned(),
            group_by: None,
            downsampling_key: "YCSBDS".to_owned(),
            downsampling: None,
            integrity: false,
            mix: Mix { read: 0.95, update: 0.05, ..Mix::default() },
            keys: KeyDistribution::Uniform,
            scan_length: Length::Uniform { min: 1, max: 1_000 },
            delete_lag: 0,
        }
    }
}

/// The unit of [`TimeSeriesSpec::interval`]. Timestamps are in milliseconds with milliseconds, else in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Milliseconds; timestamps, too.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes; timestamps in seconds.
    Minutes,
    /// Hours; timestamps in seconds.
    Hours,
    /// Days; timestamps in seconds.
    Days,
}

impl TimeUnit {
    /// Reads `timestampunits`, in any case. Errors are one line for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "milliseconds" => Self::Milliseconds,
            "seconds" => Self::Seconds,
            "minutes" => Self::Minutes,
            "hours" => Self::Hours,
            "days" => Self::Days,
            _ => {
                let known = "milliseconds, seconds, minutes, hours or days";
                return Err(format!("timestampunits must be {known}, got \"{text}\""));
            }
        })
    }

    /// Units of a timestamp in one of this.
    pub const fn timestamps(self) -> i64 {
        match self {
            Self::Milliseconds | Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
        }
    }
}

/// What values are: 8 bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Whole numbers of 32 signed bits, written as 64.
    Integers,
    /// Doubles from 0 to below 100000.
    Floats,
    /// One or the other. The bytes tell which: no such double but 0 looks like a whole number of 32 signed bits.
    MixedNumbers,
}

impl ValueType {
    /// Reads `valuetype`, in any case. Errors are one line for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "integers" => Self::Integers,
            "floats" => Self::Floats,
            "mixednumbers" | "mixed" => Self::MixedNumbers,
            _ => return Err(format!("valuetype must be integers, floats or mixednumbers, got \"{text}\"")),
        })
    }
}

/// Queries over all values of some tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupBy {
    /// `groupbyfunction`, handed to the store as it is.
    pub function: String,
    /// `groupbykeys`: for each tag, whether it is grouped.
    pub tags: Vec<bool>,
}

/// Queries for fewer, longer intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Downsampling {
    /// `downsamplingfunction`, handed to the store as it is.
    pub function: String,
    /// `downsamplinginterval`, in the unit of timestamps.
    pub interval: u64,
}

impl TimeSeriesSpec {
    /// Where YCSB starts when `insertstart` is left out, `unix_ms` being the time now: one interval ago.
    ///
    /// Leave [`start`](Self::start) empty with `dataintegrity`: it is refused, as a run could not find what a load at
    /// another time wrote.
    pub fn default_start(&self, unix_ms: i64) -> i64 {
        let now = if self.units == TimeUnit::Milliseconds { unix_ms } else { unix_ms.div_euclid(1_000) };
        now.saturating_sub(self.width())
    }

    /// From one time step to the next, in the unit of timestamps.
    pub(super) fn width(&self) -> i64 {
        i64::try_from(self.interval).unwrap_or(i64::MAX).saturating_mul(self.units.timestamps())
    }

    /// The number of values of each tag.
    pub(super) fn cardinalities(&self) -> Vec<u64> {
        (0..self.tag_count).map(|tag| self.tag_cardinality.get(tag).copied().unwrap_or(1)).collect()
    }

    /// Points that a load writes; `None`: it has no end.
    pub(super) fn loads(&self) -> Option<u64> {
        let given = |count: Option<u64>| count.filter(|&n| n > 0);
        given(self.insert_count).or(given(self.records))
    }

    /// `recordcount` as YCSB takes it.
    pub(super) fn record_count(&self) -> u64 {
        self.records.filter(|&n| n > 0).unwrap_or(RECORDS_UNKNOWN)
    }

    /// Points that a run finds.
    pub(super) fn loaded(&self) -> u64 {
        self.record_count().min(self.loads().unwrap_or(u64::MAX))
    }

    /// How many time steps are shuffled together.
    pub(super) fn shuffled_steps(&self, series: u64) -> u64 {
        if self.random_time_order { self.record_count() / series + 1 } else { 0 }
    }

    /// Whether the data can be written.
    pub(super) fn check(&self) -> Result<(), String> {
        let cards = self.cardinalities();
        let most = cards.iter().copied().max().unwrap_or(1);
        let words = [
            ("fieldlength", self.key_length, "fieldcount", self.key_count),
            ("tagkeylength", self.tag_key_length, "tagcount", self.tag_count as u64),
            ("tagvaluelength", self.tag_value_length, "tagcardinality", most),
        ];
        at_least("fieldcount", self.key_count, 1)?;
        at_least("timestampinterval", self.interval, 1)?;
        if let Some(tag) = cards.iter().position(|&n| n == 0) {
            return Err(format!("tagcardinality must be at least 1 for each tag, got 0 for tag {}", tag + 1));
        }
        for (length_name, length, count_name, count) in words {
            at_least(length_name, length as u64, 1)?;
            if count > Words::new(length).count() {
                return Err(format!("{length_name}={length} has too few names for {count_name}: {count} are wanted"));
            }
            if count > u64::from(u32::MAX) {
                return Err(format!("{count_name} must be at most {}, got {count}", u32::MAX));
            }
        }
        let series = cards.iter().try_fold(self.key_count, |all, &n| all.checked_mul(n));
        let Some(series) = series.filter(|&n| i64::try_from(n).is_ok()) else {
            return Err("fieldcount × tagcardinality gives more than 2^63 series".to_owned());
        };
        let steps = self.shuffled_steps(series);
        if steps > SHUFFLED_STEPS_MAX {
            return Err(format!(
                "randomwritetimestamporder shuffles up to {SHUFFLED_STEPS_MAX} time steps, recordcount gives {steps}"
            ));
        }
        if !(0.0..=0.999_9).contains(&self.sparsity) {
            return Err(format!("sparsity must be from 0 to 0.9999, got {}", self.sparsity));
        }
        if self.delayed_series.is_nan() {
            return Err("delayedseries must be a number".to_owned());
        }
        if self.delayed_series > 0.0 && self.delayed_intervals == 0 {
            return Err("delayedintervals must be at least 1; for no delay set delayedseries to 0".to_owned());
        }
        let words = Words::new(self.tag_key_length);
        let is_tag = |name: &str| words.number(name.as_bytes()).is_some_and(|n| n < self.tag_count as u64);
        if self.timestamp_key == self.value_key || is_tag(&self.timestamp_key) || is_tag(&self.value_key) {
            return Err("timestampkey, valuekey and the tags must have different names".to_owned());
        }
        self.check_integrity()?;
        if self.start.is_none() {
            return Err("insertstart, the first timestamp, must be given".to_owned());
        }
        Ok(())
    }

    fn check_integrity(&self) -> Result<(), String> {
        let wrong = if !self.integrity {
            None
        } else if self.value_type != ValueType::Integers {
            Some("valuetype=integers")
        } else if self.group_by.is_some() {
            Some("no groupbyfunction")
        } else if self.downsampling.is_some() {
            Some("no downsamplingfunction")
        } else if self.query_span > 0 {
            Some("querytimespan=0")
        } else if self.start.is_none() {
            Some("insertstart: a run at another time would not find what the load wrote")
        } else {
            None
        };
        wrong.map_or(Ok(()), |needs| Err(format!("dataintegrity needs {needs}")))
    }

    /// Whether the run is one, beyond [`TimeSeriesSpec::check`].
    pub(super) fn check_run(&self) -> Result<(), String> {
        if self.mix.read_modify_write > 0.0 {
            return Err("readmodifywriteproportion must be 0: time series have no such operation".to_owned());
        }
        if let Some(given) = self.group_by.as_ref().map(|by| by.tags.len()).filter(|&n| n != self.tag_count) {
            return Err(format!("groupbykeys must name each of the {} tags with 0 or 1, got {given}", self.tag_count));
        }
        if matches!(self.keys, KeyDistribution::Latest | KeyDistribution::Exponential { .. }) {
            return Err("requestdistribution must be uniform, sequential, zipfian or hotspot: metrics have no age".to_owned());
        }
        at_least("maxscanlength", Lengths::longest(&self.scan_length) as u64, 1)
    }
}

fn at_least(name: &str, value: u64, least: u64) -> Result<(), String> {
    if value < least { Err(format!("{name} must be at least {least}, got {value}")) } else { Ok(()) }
}
