//! The relative standard error of the row rate, on which `err<` is based.

/// The running mean and deviation of the interval rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Uncertainty {
    count: u32,
    sum: f64,
    sum_of_squares: f64,
}

impl Uncertainty {
    /// Adds the net row rate of an interval ([`super::Figures::net_row_rate`]).
    pub fn update(&mut self, rate: f64) {
        self.count += 1;
        self.sum += rate;
        self.sum_of_squares += rate * rate;
    }

    /// (deviation / √count) / mean, with the population's standard deviation; NaN before the first interval.
    #[must_use]
    pub fn value(&self) -> f64 {
        let count = f64::from(self.count);
        let mean = self.sum / count;
        let variance = self.sum_of_squares / count - mean * mean;
        variance.max(0.0).sqrt() / count.sqrt() / mean
    }

    /// Whether a run with `err<` may end: either the target was reached after at least `min` intervals, or there were
    /// `max` intervals.
    #[must_use]
    pub fn is_reached(&self, target: f64, min: u32, max: u32) -> bool {
        (self.count >= min && self.value() <= target) || self.count >= max
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::samples::{THROTTLED, cells};
    use super::*;

    /// The sample's rates and latencies are rounded, so its standard errors are reproduced only within 0.0002.
    #[test]
    fn column_of_a_real_run_is_reproduced() {
        let mut uncertainty = Uncertainty::default();
        let mut earlier = 0.0;
        for row in THROTTLED.lines().filter(|line| line.starts_with("total,")).take(12) {
            let cells = cells(row);
            let rows = cells[0] - earlier;
            earlier = cells[0];
            uncertainty.update(rows / (5.0 - cells[9] / 1_000.0));
            // The first interval began up to one second before the load.
            assert!((uncertainty.value() - cells[11]).abs() < 0.000_2, "{} {}", uncertainty.value(), cells[11]);
        }
    }

    #[test]
    fn uncertainty_has_bounds_on_intervals() {
        let mut uncertainty = Uncertainty::default();
        for _ in 0..3 {
            uncertainty.update(100.0);
        }
        assert!(uncertainty.is_reached(0.02, 3, 200));
        assert!(!uncertainty.is_reached(0.02, 4, 200));
        uncertainty.update(1_000.0);
        assert!(uncertainty.is_reached(0.02, 3, 4));
    }
}
