//! Runs and monitors one stage of a sort for one segment. Events and terminal output are handled elsewhere.

pub mod trial;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use loadstone_load::Segment;
use loadstone_storage::sort::disk::{self, Speed};
use loadstone_storage::sort::files::{Files, locate};
use loadstone_storage::sort::job::{Job, Stage};
use loadstone_storage::sort::memory::Sizes;
use loadstone_storage::sort::progress::{Done, Progress};
use loadstone_storage::sort::scratch::{Owner, Scratch};
use loadstone_storage::sort::task::{SortTask, StageOutcome};

use loadstone_measure::control::End;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::SortSpec;

use crate::stores::Trial;

pub use loadstone_storage::sort::SortError;

/// Refuses a trial on stores. A stage is run by [`trial::run_trial`].
pub fn run_trial(_sort: &SortSpec, _to_run: Trial<'_>) -> Result<End, EngineError> {
    Err(EngineError::usage("a sort has no operations").hint("use loadstone-engine trial to run a stage of the sort"))
}

/// The file systems of a job.
pub struct Places {
    input: (Box<dyn Files>, String),
    output: (Box<dyn Files>, String),
    owner: Owner,
}

impl Places {
    /// Finds the file systems for a job whose stages all run in this process.
    pub fn for_whole_job(job: &Job) -> Result<Self, SortError> {
        Self::for_owner(job, Owner::this_process())
    }

    /// Finds the file systems for a job whose `owner` starts one engine per stage.
    pub fn for_owner(job: &Job, owner: Owner) -> Result<Self, SortError> {
        let at = |place: &str, direct| locate(place, job, direct, Sizes::new(job).block);
        // The output of a sort must be on disk before the sort ends, so the page cache would only use memory. The input
        // of a sort, and the output of `teragen`, may be in memory.
        let direct = job.direct || (job.input.is_some() && job.output.is_some());
        let output = match &job.output {
            Some(output) => at(output, direct)?,
            None => (at(".", direct)?.0, String::new()),
        };
        let input = at(job.input.as_deref().unwrap_or("."), job.direct)?;
        Ok(Self { input, output, owner })
    }

    /// Measures the speed of the scratch directory's disk, bypassing the page cache.
    pub fn measure_disk(job: &Job, name: &str) -> Result<Speed, SortError> {
        let (files, path) = locate(job.output.as_deref().unwrap_or("."), job, true, Sizes::new(job).block)?;
        disk::measure(&*files, &Scratch::new(&path)?.path, name)
    }

    /// Creates a stage of the job on these file systems.
    pub fn create_task<'a>(&'a self, job: &'a Job, segment: Segment, progress: &'a Progress) -> SortTask<'a> {
        SortTask {
            job,
            sizes: Sizes::new(job),
            input: &*self.input.0,
            input_path: &self.input.1,
            output: &*self.output.0,
            output_path: &self.output.1,
            segment: (segment.k, segment.n),
            owner: &self.owner,
            progress,
        }
    }
}

/// A stage that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The result, or the reason for the failure.
    pub outcome: Result<StageOutcome, SortError>,
    /// The progress up to the end.
    pub done: Done,
    /// The duration of the stage.
    pub took: Duration,
}

/// Runs a stage on a separate thread. `watch` is called once per `every` until it returns an end, which stops the
/// stage.
pub fn run_stage(
    (places, job): (&Places, &Job),
    stage: Stage,
    segment: Segment,
    every: Duration,
    mut watch: impl FnMut(Done) -> Option<End>,
) -> (Ended, Option<End>) {
    let (progress, start) = (Progress::default(), Instant::now());
    let (ended, waiting) = channel();
    let mut early = None;
    let outcome = std::thread::scope(|scope| {
        let (task, progress) = (places.create_task(job, segment, &progress), &progress);
        let worker = scope.spawn(move || {
            let outcome = task.run(stage);
            let _ = ended.send(());
            outcome
        });
        while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(every) {
            if early.is_none() {
                early = watch(progress.done());
            }
            if early.is_some() {
                progress.stop();
            }
        }
        worker.join().unwrap_or_else(|_| Err(SortError::new("internal error: the thread of a stage panicked")))
    });
    (Ended { outcome, done: progress.done(), took: start.elapsed() }, early)
}
