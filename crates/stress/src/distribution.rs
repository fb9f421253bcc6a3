//! The distributions of cassandra-stress: their text, their samples, and their inverse CDF.
//!
//! Sources: Cassandra's `OptionDistribution.java` and `Distribution*.java`, and commons-math 3.2, with which the tool
//! draws its samples.

mod erf;
mod sampler;
mod text;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use sampler::Distribution;
pub use text::{parse_count, parse_ratio, parse_spec};

pub(crate) use text::{parse_integer, split_range};

use crate::number::{format_decimals, format_double};

/// A distribution as parsed by the tool. Bounds are inclusive, and numbers are in the unit of the draws. It is
/// serialised as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[allow(missing_docs, reason = "the names of cassandra-stress")]
pub enum Spec {
    Fixed {
        value: i64,
    },
    Uniform {
        min: i64,
        max: i64,
    },
    Gaussian {
        min: i64,
        max: i64,
        mean: f64,
        stdev: f64,
    },
    Exponential {
        min: i64,
        max: i64,
        mean: f64,
    },
    Extreme {
        min: i64,
        max: i64,
        shape: f64,
        scale: f64,
    },
    QuantizedExtreme {
        min: i64,
        max: i64,
        shape: f64,
        scale: f64,
        quantas: u32,
    },
    Sequence {
        start: i64,
        end: i64,
    },
    Inverse(Box<Spec>),
    /// An extension to the tool: `presets(70:1, 20:2.5, 10:3.5)`.
    Presets(Vec<Preset>),
}

/// A value and its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The value's share of all draws. Shares are relative to their sum.
    pub percent: f64,
    /// The value. 2.5 represents 2 or 3, equally often.
    pub value: f64,
}

impl Spec {
    /// Creates an unseeded sampler.
    ///
    /// # Errors
    /// The text is valid, but no value can be drawn: the range is empty or reversed, or a parameter is not positive.
    /// The tool exits with a stack trace when it first draws from such a distribution.
    pub fn sampler(&self) -> Result<Distribution, String> {
        Distribution::new(self)
    }

    /// The minimum and the maximum, both of which can occur. The maximum of a sequence is its end.
    pub fn range(&self) -> Result<(i64, i64), String> {
        let sampler = self.sampler()?;
        let (first, last) = (sampler.min(), sampler.max());
        Ok((first.min(last), first.max(last)))
    }

    /// Whether this is `fixed(…)`, whose draws all give the same value.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed { .. })
    }
}

impl TryFrom<String> for Spec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_spec(&text)
    }
}

/// Formats a distribution as text that parses to the same distribution.
impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        match spec {
            Spec::Fixed { value } => format!("fixed({value})"),
            Spec::Uniform { min, max } => format!("uniform({min}..{max})"),
            Spec::Gaussian { min, max, mean, stdev } => {
                format!("gaussian({min}..{max},{},{})", format_double(mean), format_double(stdev))
            }
            Spec::Exponential { min, max, .. } => format!("exp({min}..{max})"),
            Spec::Extreme { min, max, shape, .. } => format!("extreme({min}..{max},{})", format_double(shape)),
            Spec::QuantizedExtreme { min, max, shape, quantas, .. } => {
                format!("qextreme({min}..{max},{},{quantas})", format_double(shape))
            }
            Spec::Sequence { start, end } => format!("seq({start}..{end})"),
            Spec::Inverse(inner) => format!("~{}", Self::from(*inner)),
            Spec::Presets(presets) => {
                let texts: Vec<String> = presets.iter().map(|p| format!("{}:{}", p.percent, p.value)).collect();
                format!("presets({})", texts.join(","))
            }
        }
    }
}

/// Formats a distribution as in the settings block (`getConfigAsString`).
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = |value: f64| format_decimals(value, 6);
        match self {
            Self::Fixed { value } => write!(f, "Fixed:  key={value}"),
            Self::Uniform { min, max } => write!(f, "Uniform:  min={min},max={max}"),
            Self::Gaussian { min, max, mean, stdev } => {
                write!(f, "Gaussian:  min={min},max={max},mean={},stdev={}", decimal(*mean), decimal(*stdev))
            }
            Self::Exponential { min, max, mean } => {
                write!(f, "Exponential:  min={min},max={max},mean={}", decimal(*mean))
            }
            Self::Extreme { min, max, shape, scale } | Self::QuantizedExtreme { min, max, shape, scale, .. } => {
                write!(f, "Extreme:  min={min},max={max},shape={}, scale={}", decimal(*shape), decimal(*scale))
            }
            Self::Sequence { start, end } => write!(f, "Sequence:  start={start},end={end}"),
            Self::Inverse(inner) => write!(f, "Inverse: {inner}"),
            Self::Presets(presets) => {
                let texts: Vec<String> = presets.iter().map(|p| format!("{}:{}", p.percent, p.value)).collect();
                write!(f, "Presets:  {}", texts.join(","))
            }
        }
    }
}

/// A ratio `DIST/N`: a share between 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioSpec {
    /// The distribution of the dividend.
    pub distribution: Spec,
    /// The divisor.
    pub divisor: f64,
}

impl RatioSpec {
    /// The share that a draw represents: the untruncated sample divided by the divisor, clamped to the range from 0 to
    /// 1.
    #[must_use]
    pub fn share(&self, sample: f64) -> f64 {
        (sample / self.divisor).clamp(0.0, 1.0)
    }

    /// Whether the share is fixed at 1.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.distribution, Spec::Fixed { value } if self.share(value as f64) >= 1.0)
    }
}

impl fmt::Display for RatioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ratio: divisor={};delegate={}", format_decimals(self.divisor, 6), self.distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: &str = include_str!("../fixtures/distributions.txt");

    fn spec(text: &str) -> Spec {
        parse_spec(text).unwrap()
    }

    /// The lines of the fixture with this mark; the mark is removed.
    fn rows(mark: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
        SAMPLES
            .lines()
            .filter_map(move |line| line.strip_prefix(mark))
            .map(|row| row.split('|').map(str::trim).collect())
    }

    #[test]
    fn samples_match_the_tool() {
        const SEEDS: [i64; 8] = [42, 1, 0, -1, 123_456_789_012_345, i64::MIN, i64::MAX, -987_654_321];
        let mut count = 0;
        for row in rows("samples ") {
            let mut distribution = spec(row[0]).sampler().unwrap();
            for (seed, expected) in SEEDS.iter().zip(&row[1..9]) {
                distribution.seed(*seed);
                let values: Vec<String> = (0..4).map(|_| distribution.next().to_string()).collect();
                assert_eq!(values.join(" "), *expected, "{} seeded with {seed}", row[0]);
            }
            let figures =
                format!("avg {} min {} max {}", distribution.average(), distribution.min(), distribution.max());
            assert_eq!(figures, row[9], "{}", row[0]);
            let quantiles =
                [0.001, 0.1, 0.25, 0.5, 0.9, 0.999, 0.999_999_9].map(|p| distribution.quantile(p).to_string());
            assert_eq!(quantiles.join(" "), row[10], "{}", row[0]);
            count += 1;
        }
        assert_eq!(count, 25);
    }

    #[test]
    fn sixty_thousand_samples_match_the_tool() {
        for row in rows("sum ") {
            let mut distribution = spec(row[0]).sampler().unwrap();
            let mut sum = 0_i64;
            for index in 0..20_000_i64 {
                distribution.seed(index.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1_442_695_040_888_963_407));
                for _ in 0..3 {
                    sum = sum.wrapping_mul(31).wrapping_add(distribution.next());
                }
            }
            assert_eq!(sum.to_string(), row[1], "{}", row[0]);
        }
    }

    #[test]
    fn quantiles_of_quanta_match_the_tool() {
        for row in rows("q ") {
            let distribution = spec(row[0]).sampler().unwrap();
            let figures = format!("{} {} {}", distribution.average(), distribution.min(), distribution.max());
            assert_eq!(figures, row[1], "{}", row[0]);
            let quantiles = [0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0].map(|p| distribution.quantile(p).to_string());
            assert_eq!(quantiles.join(" "), row[2], "{}", row[0]);
        }
    }

    #[test]
    fn reversed_range_has_no_sampler() {
        for text in
            ["uniform(10..1)", "exp(10..1)", "exp(1..2)", "gaussian(10..1)", "gaussian(1..10,5,-2)", "~uniform(9..3)"]
        {
            assert!(spec(text).sampler().is_err(), "{text}");
        }
    }

    #[test]
    fn quantized_samples_repeat_with_the_seed() {
        let mut distribution = spec("qextreme(1..1000,2,4)").sampler().unwrap();
        let mut draw = |seed| {
            distribution.seed(seed);
            [distribution.next(), distribution.next(), distribution.next()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn distributions_survive_their_text() {
        for text in [
            "fixed(-7)",
            "uniform(1..100)",
            "gaussian(1..1000)",
            "gaussian(1..10,0)",
            "gaussian(1..10,0.1,1e-9)",
            "exp(1..2)",
            "extreme(1..2,3)",
            "qextreme(1..1000,0.3,4)",
            "seq(0..9)",
            "~extr(1..1M,2.5)",
        ] {
            let spec = spec(text);
            assert_eq!(Spec::try_from(String::from(spec.clone())), Ok(spec), "{text}");
        }
    }

    #[test]
    fn shares_are_clamped() {
        let ratio = |text: &str| parse_ratio(text).unwrap().unwrap();
        assert_eq!(ratio("fixed(40)/100").share(40.0).to_bits(), 0.4_f64.to_bits());
        assert_eq!(ratio("fixed(7)/2").share(7.0).to_bits(), 1.0_f64.to_bits());
        assert_eq!(ratio("uniform(-5..5)/2").share(-5.0).to_bits(), 0.0_f64.to_bits());
    }
}
