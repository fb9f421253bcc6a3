//! `print dist=…`: the quantiles of a distribution.

use crate::distribution::Distribution;
use crate::number::format_decimals;

/// A header and twelve quantiles: share of the samples, value, share of the greatest value.
///
/// Source: `SettingsMisc.printDistribution`.
pub(super) fn render_distribution(distribution: &Distribution) -> String {
    let mut text = String::from("% of samples    Range       % of total\n");
    let hundredth = distribution.quantile(1.0) as f64 / 100.0;
    for p in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0] {
        let value = distribution.quantile(p);
        text.push_str(&format!(
            "{:<16}{value:<12}{:>12}\n",
            format_decimals(p * 100.0, 1),
            format_decimals(value as f64 / hundredth, 1)
        ));
    }
    text
}
