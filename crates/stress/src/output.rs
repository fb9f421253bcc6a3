//! The output of the tool: settings, intervals, results, and the table of auto mode. Lines are written to standard
//! output and to `-log file=`.
//!
//! Sources: Cassandra's `StressMetrics.java`, `StressAction.java` and `Settings*.java`, and the output of 3.3, 3.11.5
//! and 4.0-alpha2.

mod auto;
mod messages;
mod profiles;
mod results;
mod rows;
mod settings_block;
mod uncertainty;

pub use auto::{
    average_improvement, is_saturated, next_threads, render_auto_table, render_improvement, render_saturation,
};
pub use messages::{
    Timing, UNEVEN_STEPS, histogram_tag, render_failed_operation, render_running, render_steps_header, render_warmup,
};
pub use profiles::render_profiles;
pub use results::{Summary, render_results};
pub use rows::{Figures, Garbage, Interval, METRICS, render_header, render_interval};
pub use settings_block::render_settings;
pub use uncertainty::Uncertainty;

/// The last line of a run that succeeded, no matter how many errors were ignored.
pub const END: &str = "END";
/// The last line of a run that failed.
pub const FAILURE: &str = "FAILURE";
/// The line that the tool prints for `n=0`.
pub const SCHEMA_ONLY: &str = "N=0: SCHEMA CREATED, NOTHING ELSE DONE.";
