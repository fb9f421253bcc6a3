//! Files that a stage leaves in the scratch directory for later stages: samples, sums and spans.

use serde::{Deserialize, Serialize};

use crate::sort::SortError;
use crate::sort::checksum::Checksum;
use crate::sort::files::{join, read_all, write_all};
use crate::sort::splitters::{Key, Splitters};
use crate::sort::task::{SortTask, StageOutcome};

/// The number of rows and their checksum, which the last stage compares.
#[derive(Serialize, Deserialize)]
struct Sum {
    rows: u64,
    checksum: String,
}

/// Whether a sum covers the rows read or the rows written.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Read,
    Written,
}

impl Side {
    fn prefix(self) -> &'static str {
        match self {
            Self::Read => "sum-read-",
            Self::Written => "sum-written-",
        }
    }
}

impl SortTask<'_> {
    /// Computes the splitters from the samples of all segments, so that all segments have the same splitters.
    pub(super) fn splitters(&self) -> Result<Splitters, SortError> {
        let mut keys: Vec<Key> = Vec::new();
        for (_, bytes) in self.list_files("sample-")? {
            keys.extend_from_slice(bytes.as_chunks().0);
        }
        Ok(Splitters::from_sample(keys, self.job.parts as usize))
    }

    /// The files of earlier stages in the scratch directory with names that begin with `prefix`.
    pub(super) fn list_files(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, SortError> {
        let scratch = self.scratch()?.path;
        let Some(entries) = self.output.list_files(&scratch)? else {
            return Err(SortError::new(format!("there is no scratch directory {scratch}"))
                .hint("run the stage \"prepare\" first"));
        };
        let own = entries.iter().filter(|entry| entry.name().starts_with(prefix));
        own.map(|entry| {
            let path = join(&scratch, entry.name());
            read_all(self.output, &path).map(|bytes| (path, bytes))
        })
        .collect()
    }

    /// Leaves a file for later stages.
    pub(super) fn leave_file(&self, prefix: &str, what: &impl Serialize) -> Result<(), SortError> {
        let text = serde_json::to_vec(what).map_err(|error| SortError::new(format!("internal error: {error}")))?;
        write_all(self.output, &join(&self.scratch()?.path, &format!("{prefix}{}", self.segment.0)), &text)
    }

    pub(super) fn leave_sum(&self, side: Side, rows: u64, checksum: Checksum) -> Result<StageOutcome, SortError> {
        let checksum = checksum.to_string();
        self.leave_file(side.prefix(), &Sum { rows, checksum: checksum.clone() })?;
        Ok(StageOutcome { checksum: Some(checksum), ..StageOutcome::default() })
    }

    pub(super) fn sums(&self, side: Side) -> Result<Option<(u64, Checksum)>, SortError> {
        let mut all = None;
        for (path, bytes) in self.list_files(side.prefix())? {
            let wrong =
                |error: &dyn std::fmt::Display| SortError::new(format!("cannot read the sum in {path}: {error}"));
            let sum: Sum = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
            let (rows, checksum) = all.get_or_insert((0, Checksum::default()));
            *rows += sum.rows;
            *checksum += sum.checksum.parse().map_err(|error| wrong(&error))?;
        }
        Ok(all)
    }
}
