//! The description of a time series workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::Mix;
use crate::keys::KeyDistribution;
use crate::value_length::Length;

/// The number that YCSB uses for a `recordcount` of 0.
const RECORDS_UNKNOWN: u64 = 2_147_483_647;

/// A time series workload. The description of each field names the corresponding YCSB property. Defaults are from
/// YCSB's code, and YCSB's template does not always state them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// The fields correspond one to one to YCSB's properties.
#[allow(clippy::struct_excessive_bools)]
pub struct TimeSeriesSpec {
    /// `table`.
    pub table: String,
    /// `recordcount`: number of points present before a run. None (or 0): unknown; queries then use 2147483647.
    pub records: Option<u64>,
    /// `insertcount`: number of points that a load writes. None (or 0): as many as `records`.
    pub insert_count: Option<u64>,
    /// `operationcount`: number of operations of the run. None: unlimited.
    pub operations: Option<u64>,
    /// `insertstart`: first timestamp, in milliseconds or seconds since 1970, see `units`. Required here; for YCSB's
    /// default, see [`TimeSeriesSpec::default_start`].
    pub start: Option<i64>,
    /// `fieldcount`: number of metrics, which are the keys of the series.
    pub key_count: u64,
    /// `fieldlength`: number of letters in a metric's name.
    pub key_length: usize,
    /// `tagcount`: number of tags of a series.
    pub tag_count: usize,
    /// `tagcardinality`: number of values of each tag; missing entries are 1, and entries beyond `tag_count` are not
    /// used.
    pub tag_cardinality: Vec<u64>,
    /// `tagkeylength`: number of letters in a tag's name.
    pub tag_key_length: usize,
    /// `tagvaluelength`: number of letters in a tag's value.
    pub tag_value_length: usize,
    /// `timestampinterval`: time between two points of a series, in `units`.
    pub interval: u64,
    /// `timestampunits`.
    pub units: TimeUnit,
    /// `timestampkey`: name of the timestamp's field.
    pub timestamp_key: String,
    /// `valuekey`: name of the value's field.
    pub value_key: String,
    /// `tagpairdelimiter`: separates a name from its value in queries and deletes.
    pub tag_pair_delimiter: String,
    /// `deletedelimiter`: separates the parts of a delete's key.
    pub delete_delimiter: String,
    /// `randomwritetimestamporder`: time steps are written in shuffled order.
    pub random_time_order: bool,
    /// `randomtimeseriesorder`: the series of a time step are written in shuffled order.
    pub random_series_order: bool,
    /// `valuetype`.
    pub value_type: ValueType,
    /// `sparsity`: share of missing points, 0 to 0.9999.
    pub sparsity: f64,
    /// `delayedseries`: share of the series whose points are late.
    pub delayed_series: f64,
    /// `delayedintervals`: a late series is 0 to `delayed_intervals` − 1 intervals late, depending on its number.
    pub delayed_intervals: u64,
    /// `querytimespan`: length of a query's time range, in the unit of timestamps; 0: a single timestamp.
    pub query_span: u64,
    /// `queryrandomtimespan`: the length is 0 to `query_span` − 1 instead, in whole intervals.
    pub query_random_span: bool,
    /// `querytimespandelimiter`: separates the ends of a query's time range.
    pub query_span_delimiter: String,
    /// `groupbykey`: name of the group-by clause.
    pub group_by_key: String,
    /// `groupbyfunction` and `groupbykeys`.
    pub group_by: Option<GroupBy>,
    /// `downsamplingkey`: name of the downsampling clause.
    pub downsampling_key: String,
    /// `downsamplingfunction` and `downsamplinginterval`.
    pub downsampling: Option<Downsampling>,
    /// `dataintegrity`: values are derived from tags and timestamp, and reads are checked.
    pub integrity: bool,
    /// The `…proportion` properties; `readmodifywriteproportion` must be 0.
    pub mix: Mix,
    /// `requestdistribution` of reads over the metrics: uniform, sequential, zipfian, hotspot (or true zipfian).
    pub keys: KeyDistribution,
    /// `maxscanlength` and `scanlengthdistribution`: number of points that a scan reads, at least 1.
    pub scan_length: Length,
    /// Number of upcoming deletes whose points queries and updates avoid, so that the requested point still exists (an
    /// extension).
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

/// The unit of [`TimeSeriesSpec::interval`]. If it is milliseconds, timestamps are in milliseconds, otherwise in
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Milliseconds; timestamps are in milliseconds too.
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
    /// Parses `timestampunits`, ignoring case. Error messages have one line.
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

    /// The length of this unit, in the unit of timestamps.
    pub const fn timestamps(self) -> i64 {
        match self {
            Self::Milliseconds | Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
        }
    }
}

/// The type of values, which have 8 bytes in big-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Signed 32-bit integers, written as 64 bits.
    Integers,
    /// Doubles from 0 to below 100000.
    Floats,
    /// Both types. The bytes distinguish them, because no such double except 0 equals a signed 32-bit integer.
    MixedNumbers,
}

impl ValueType {
    /// Parses `valuetype`, ignoring case. Error messages have one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "integers" => Self::Integers,
            "floats" => Self::Floats,
            "mixednumbers" | "mixed" => Self::MixedNumbers,
            _ => {
                return Err(format!("valuetype must be integers, floats or mixednumbers, got \"{text}\""));
            }
        })
    }
}

/// Queries that group the points over all values of some tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupBy {
    /// `groupbyfunction`, passed to the store unchanged.
    pub function: String,
    /// `groupbykeys`: for each tag, whether points are grouped by it.
    pub tags: Vec<bool>,
}

/// Queries that combine points into longer intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Downsampling {
    /// `downsamplingfunction`, passed to the store unchanged.
    pub function: String,
    /// `downsamplinginterval`, in the unit of timestamps.
    pub interval: u64,
}

impl TimeSeriesSpec {
    /// YCSB's start without `insertstart`: one interval before `unix_ms`, the current time.
    ///
    /// With `dataintegrity`, leave [`start`](Self::start) empty. The spec is then refused, because a run could not find
    /// the points that a load wrote at another time.
    pub fn default_start(&self, unix_ms: i64) -> i64 {
        let now = if self.units == TimeUnit::Milliseconds { unix_ms } else { unix_ms.div_euclid(1_000) };
        now.saturating_sub(self.range_width())
    }

    /// The time between two time steps, in the unit of timestamps.
    pub(super) fn range_width(&self) -> i64 {
        i64::try_from(self.interval).unwrap_or(i64::MAX).saturating_mul(self.units.timestamps())
    }

    /// The number of values of each tag.
    pub(super) fn cardinalities(&self) -> Vec<u64> {
        (0..self.tag_count).map(|tag| self.tag_cardinality.get(tag).copied().unwrap_or(1)).collect()
    }

    /// Number of points that a load writes; `None`: unlimited.
    pub(super) fn points_loaded(&self) -> Option<u64> {
        let nonzero = |count: Option<u64>| count.filter(|&n| n > 0);
        nonzero(self.insert_count).or(nonzero(self.records))
    }

    /// The value of `recordcount` as YCSB interprets it.
    pub(super) fn record_count(&self) -> u64 {
        self.records.filter(|&n| n > 0).unwrap_or(RECORDS_UNKNOWN)
    }

    /// Number of loaded points that a run uses.
    pub(super) fn count_loaded_points(&self) -> u64 {
        self.record_count().min(self.points_loaded().unwrap_or(u64::MAX))
    }

    /// Number of time steps that are shuffled together; 0 if the order of time steps is not random.
    pub(super) fn shuffle_window(&self, series: u64) -> u64 {
        if self.random_time_order { self.record_count() / series + 1 } else { 0 }
    }
}
