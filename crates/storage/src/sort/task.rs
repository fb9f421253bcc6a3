//! A task: one stage of a job for one segment, and its outcome.

use crate::sort::SortError;
use crate::sort::files::Files;
use crate::sort::job::Job;
use crate::sort::memory::Sizes;
use crate::sort::progress::Progress;
use crate::sort::scratch::Owner;
use crate::sort::validate::Verdict;

/// One stage of a job, for one of the segments.
#[derive(Clone, Copy)]
pub struct SortTask<'a> {
    /// The job.
    pub job: &'a Job,
    /// How the job's memory is divided: [`Sizes::new`], except in tests.
    pub sizes: Sizes,
    /// The file system of the input.
    pub input: &'a dyn Files,
    /// The path of the input on that file system.
    pub input_path: &'a str,
    /// The file system of the output.
    pub output: &'a dyn Files,
    /// The path of the output on that file system; empty if there is no output.
    pub output_path: &'a str,
    /// Segment k of n.
    pub segment: (u64, u64),
    /// The process that owns the scratch directory from the first stage to the last.
    pub owner: &'a Owner,
    /// The progress of the stage.
    pub progress: &'a Progress,
}

/// The result of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOutcome {
    /// The checksum of the processed rows.
    pub checksum: Option<String>,
    /// The result of validation.
    pub verdict: Option<Verdict>,
    /// A warning for the user, even though the stage succeeded.
    pub warning: Option<SortError>,
}
