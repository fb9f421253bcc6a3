//! Refuses invalid settings. Error messages have one line and name YCSB's property.

use super::spec::{TimeSeriesSpec, ValueType};
use super::words::Words;
use crate::keys::KeyDistribution;
use crate::refusal::Refusal;
use crate::value_length::{Length, Lengths};

/// Maximum number of time steps that can be shuffled; YCSB has the same limit.
const SHUFFLED_STEPS_MAX: u64 = 1 << 24;

impl TimeSeriesSpec {
    /// Refuses a spec that cannot be loaded or, with `run`, that cannot be run.
    pub fn check_spec(&self, run: bool) -> Result<(), Refusal> {
        let refuse = |message| Refusal::new(message, "change the property that the message names");
        if run {
            self.check_run().map_err(refuse)?;
        }
        self.check_data().map_err(refuse)?;
        self.keys.check_distribution()?;
        self.mix.check_mix(run)?;
        if run { self.scan_length.check_length("work.scan_length") } else { Ok(()) }
    }

    /// Checks that the data can be written.
    pub(super) fn check_data(&self) -> Result<(), String> {
        let cards = self.cardinalities();
        let most = cards.iter().copied().max().unwrap_or(1);
        let lengths = [
            ("fieldlength", self.key_length, "fieldcount", self.key_count),
            ("tagkeylength", self.tag_key_length, "tagcount", self.tag_count as u64),
            ("tagvaluelength", self.tag_value_length, "tagcardinality", most),
        ];
        require_min("fieldcount", self.key_count, 1)?;
        require_min("timestampinterval", self.interval, 1)?;
        if let Some(tag) = cards.iter().position(|&n| n == 0) {
            return Err(format!("tagcardinality must be at least 1 for each tag, got 0 for tag {}", tag + 1));
        }
        for (length_name, length, count_name, count) in lengths {
            require_min(length_name, length as u64, 1)?;
            if count > Words::new(length).count() {
                return Err(format!("{length_name}={length} has too few names for {count_name}: {count} are required"));
            }
            if count > u64::from(u32::MAX) {
                return Err(format!("{count_name} must be at most {}, got {count}", u32::MAX));
            }
        }
        let series = cards.iter().try_fold(self.key_count, |all, &n| all.checked_mul(n));
        let Some(series) = series.filter(|&n| i64::try_from(n).is_ok()) else {
            return Err("fieldcount × tagcardinality gives more than 2^63 series".to_owned());
        };
        let steps = self.shuffle_window(series);
        if steps > SHUFFLED_STEPS_MAX {
            return Err(format!(
                "randomwritetimestamporder shuffles at most {SHUFFLED_STEPS_MAX} time steps, but recordcount gives {steps}"
            ));
        }
        if !(0.0..=0.999_9).contains(&self.sparsity) {
            return Err(format!("sparsity must be from 0 to 0.9999, got {}", self.sparsity));
        }
        if self.delayed_series.is_nan() {
            return Err("delayedseries must be a number".to_owned());
        }
        if self.delayed_series > 0.0 && self.delayed_intervals == 0 {
            return Err("delayedintervals must be at least 1; for no delay, set delayedseries to 0".to_owned());
        }
        let tags = Words::new(self.tag_key_length);
        let is_tag = |name: &str| tags.parse_word(name.as_bytes()).is_some_and(|n| n < self.tag_count as u64);
        if self.timestamp_key == self.value_key || is_tag(&self.timestamp_key) || is_tag(&self.value_key) {
            return Err("timestampkey, valuekey and the tags must have different names".to_owned());
        }
        self.check_integrity()?;
        if self.start.is_none() {
            return Err("insertstart, the first timestamp, must be set".to_owned());
        }
        Ok(())
    }

    fn check_integrity(&self) -> Result<(), String> {
        let wrong = if !self.integrity {
            None
        } else if self.value_type != ValueType::Integers {
            Some("valuetype=integers")
        } else if self.group_by.is_some() {
            Some("queries without groupbyfunction")
        } else if self.downsampling.is_some() {
            Some("queries without downsamplingfunction")
        } else if self.query_span > 0 {
            Some("querytimespan=0")
        } else if self.start.is_none() {
            Some("insertstart: a run at another time would not find what the load wrote")
        } else {
            None
        };
        wrong.map_or(Ok(()), |needs| Err(format!("dataintegrity needs {needs}")))
    }

    /// Checks the additional settings of the run, beyond [`TimeSeriesSpec::check_data`].
    pub(super) fn check_run(&self) -> Result<(), String> {
        if self.mix.read_modify_write > 0.0 {
            return Err("readmodifywriteproportion must be 0: time series have no such operation".to_owned());
        }
        if let Some(key_count) = self.group_by.as_ref().map(|by| by.tags.len()).filter(|&n| n != self.tag_count) {
            return Err(format!(
                "groupbykeys must have a 0 or 1 for each of the {} tags, got {key_count}",
                self.tag_count
            ));
        }
        if matches!(self.keys, KeyDistribution::Latest | KeyDistribution::Exponential { .. }) {
            return Err(
                "requestdistribution must be uniform, sequential, zipfian or hotspot: metrics are not inserted in order".to_owned()
            );
        }
        let longest = match &self.scan_length {
            Length::Uniform { max, .. } | Length::Zipfian { max, .. } => *max,
            other => Lengths::longest(other),
        };
        require_min("maxscanlength", longest as u64, 1)
    }
}

fn require_min(name: &str, value: u64, least: u64) -> Result<(), String> {
    if value < least { Err(format!("{name} must be at least {least}, got {value}")) } else { Ok(()) }
}
