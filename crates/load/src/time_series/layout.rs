//! The points of a workload, and the order in which they are written.
//!
//! A position is a place in the grid of all series at all time steps: step × number of series + place of the series.
//! Every position is written once, in order; with sparsity, some positions are omitted.
//!
//! Nothing in this module depends on the trial's seed: a run's seed differs from its load's, and the run must find the
//! loaded points.

use super::spec::TimeSeriesSpec;
use crate::kind::Kind;
use crate::kind_sequence::KindSequence;
use crate::random::{Draws, Purpose};

/// The seed for everything that depends on the data rather than on the trial.
const DATA_SEED: u64 = 0x7469_6d65_7365_7269;

/// A single point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// The number of the series: metric and tag values in mixed radix, the last tag changing fastest.
    pub(super) series: u64,
    pub(super) timestamp: i64,
}

#[derive(Debug)]
pub(super) struct SeriesLayout {
    series: u64,
    /// Number of series per metric.
    per_key: u64,
    /// For each tag, the distance between the series of neighbouring values, and the number of values.
    tags: Vec<(u64, u64)>,
    orders: Option<Orders>,
    /// With sparsity, a position is written if the kind at this position of the sequence is an insert.
    sparse: Option<KindSequence>,
    /// A shuffle of the time steps, which is repeated; if empty, the steps are in chronological order.
    steps: Vec<u32>,
    start: i64,
    width: i64,
    interval: i64,
    delayed_series: f64,
    delayed_intervals: u64,
}

/// Shuffles of the metrics and of each tag's values.
#[derive(Debug)]
struct Orders {
    keys: Vec<u32>,
    values: Vec<Vec<u32>>,
}

impl Orders {
    fn new(key_count: u64, cards: &[u64]) -> Self {
        let most = cards.iter().copied().max().unwrap_or(1);
        let (keys, values) = (shuffle_order(key_count, 0), shuffle_order(most, 1));
        // All tags use the same shuffle of values, as in YCSB, but every tag keeps its set of values.
        let of_tag = |&card: &u64| values.iter().copied().filter(|&value| u64::from(value) < card).collect();
        Self { keys, values: cards.iter().map(of_tag).collect() }
    }
}

fn shuffle_order(count: u64, salt: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    Draws::new(DATA_SEED, salt, Purpose::Key).shuffle_items(&mut numbers);
    numbers
}

impl SeriesLayout {
    /// The layout of a spec that was checked; `None` if sparsity leaves no points.
    pub(super) fn new(spec: &TimeSeriesSpec) -> Option<Self> {
        let cards = spec.cardinalities();
        let mut per_key = 1;
        let mut tags: Vec<(u64, u64)> = Vec::with_capacity(cards.len());
        for &card in cards.iter().rev() {
            tags.push((per_key, card));
            per_key *= card;
        }
        tags.reverse();
        let series = spec.key_count * per_key;
        let sparse = if spec.sparsity > 0.0 {
            let weights = [(Kind::Insert, 1.0 - spec.sparsity), (Kind::Delete, spec.sparsity)];
            Some(
                KindSequence::new(DATA_SEED, &weights, &[Kind::Insert], None)
                    .filter(|kinds| kinds.has_kind(Kind::Insert))?,
            )
        } else {
            None
        };
        Some(Self {
            series,
            per_key,
            tags,
            orders: spec.random_series_order.then(|| Orders::new(spec.key_count, &cards)),
            sparse,
            steps: shuffle_order(spec.shuffle_window(series), 2),
            start: spec.start?,
            width: spec.range_width(),
            interval: i64::try_from(spec.interval).unwrap_or(i64::MAX),
            delayed_series: spec.delayed_series,
            delayed_intervals: spec.delayed_intervals,
        })
    }

    pub(super) const fn series_count(&self) -> u64 {
        self.series
    }

    pub(super) const fn per_key(&self) -> u64 {
        self.per_key
    }

    /// The metric of a series.
    #[inline]
    pub(super) const fn key(&self, series: u64) -> u64 {
        series / self.per_key
    }

    /// The value of a tag of a series.
    #[inline]
    pub(super) fn tag_value(&self, series: u64, tag: usize) -> u64 {
        let (apart, card) = self.tags[tag];
        series / apart % card
    }

    /// The position of the `nth` (from 0) written point.
    #[inline]
    pub(super) fn position(&self, nth: u64) -> u64 {
        self.sparse.as_ref().and_then(|kinds| kinds.index_of(Kind::Insert, nth)).unwrap_or(nth)
    }

    /// The number of points that are written before `position`.
    #[inline]
    pub(super) fn points_before(&self, position: u64) -> u64 {
        self.sparse.as_ref().map_or(position, |kinds| kinds.count_before(Kind::Insert, position))
    }

    /// The point at `position`.
    #[inline]
    pub(super) fn point(&self, position: u64) -> Point {
        let series = self.series_at(position % self.series);
        let time = self.step_time(position / self.series);
        Point { series, timestamp: time.saturating_sub(self.series_delay(series)) }
    }

    #[inline]
    fn series_at(&self, place: u64) -> u64 {
        let Some(orders) = &self.orders else { return place };
        let mut rest = place % self.per_key;
        let mut series = u64::from(orders.keys[(place / self.per_key) as usize]) * self.per_key;
        for (&(apart, _), values) in self.tags.iter().zip(&orders.values) {
            series += u64::from(values[(rest / apart) as usize]) * apart;
            rest %= apart;
        }
        series
    }

    #[inline]
    fn step_time(&self, step: u64) -> i64 {
        let shuffled = self.steps.len() as u64;
        // If steps are shuffled, YCSB's first step is one step before the start.
        let step = match step.checked_rem(shuffled) {
            None => step as i64,
            Some(place) => (step - place + u64::from(self.steps[place as usize])) as i64 - 1,
        };
        self.start.saturating_add(step.saturating_mul(self.width))
    }

    /// The delay of a series. Here, YCSB counts intervals without their unit: in seconds even if the unit is minutes.
    #[inline]
    fn series_delay(&self, series: u64) -> i64 {
        if series as f64 / self.series as f64 >= self.delayed_series {
            return 0;
        }
        ((series % self.delayed_intervals) as i64).saturating_mul(self.interval)
    }
}
