//! The stages of a job.

use std::sync::mpsc::sync_channel;

use crate::fs::AlignedBuffer;
use crate::sort::SortError;
use crate::sort::checksum::Checksum;
use crate::sort::chunk::{Chunk, Own};
use crate::sort::exchange::Side;
use crate::sort::files::{join, rewrite_file, write_all};
use crate::sort::input::{ALIGNED_ROWS, Input, Piece, PieceReader};
use crate::sort::job::Stage;
use crate::sort::merge::{self, MergeMemory};
use crate::sort::parallel::process_in_parallel;
use crate::sort::rows::{KEY_BYTES, ROW_BYTES, RowCheck, Rows};
use crate::sort::runs::{self, Run};
use crate::sort::scratch::Scratch;
use crate::sort::spool::{Buffers, Keep, Spool};
use crate::sort::task::{SortTask, StageOutcome};
use crate::sort::validate::{self, RowSpan, Verdict};

/// Number of places in the input, over all segments, at which [`ALIGNED_ROWS`] keys are sampled. Hadoop samples 100,000
/// keys at up to 10 places.
const SAMPLED: usize = 100;

/// Chunk size in bytes beyond which a larger chunk no longer pays off. A GB of new memory took 4 CPU-seconds on a
/// virtual machine, more than merging a few more runs.
const CHUNK_ENOUGH: usize = 256 << 20;
/// Number of runs up to which the depth of the tournament tree does not matter.
const RUNS: usize = 64;

impl SortTask<'_> {
    /// Runs the stage.
    pub fn run(&self, stage: Stage) -> Result<StageOutcome, SortError> {
        self.job.check()?;
        if matches!(stage, Stage::Prepare | Stage::Commit | Stage::Abandon) && self.segment.1 != 1 {
            return Err(SortError::usage(format!(
                "the stage \"{}\" runs as one segment, got {}",
                stage.name(),
                self.segment.1
            ))
            .hint("run it as segment 0 of 1"));
        }
        match stage {
            Stage::Prepare => self.prepare(),
            Stage::Generate => self.generate(),
            Stage::Sample => self.sample(),
            Stage::Sort => self.sort(),
            Stage::SortInMemory => self.sort_in_memory(),
            Stage::Merge => self.merge(),
            Stage::Validate => self.validate(),
            Stage::Commit => self.commit(),
            Stage::Abandon => {
                self.scratch()?.abandon_directory(self.output, self.owner).map(|()| StageOutcome::default())
            }
        }
    }

    /// Whether the whole input fits into one segment's memory.
    pub fn is_in_memory(&self) -> Result<bool, SortError> {
        let pieces = self.list_input()?.pieces(piece_rows(self.sizes.block));
        Ok(pieces.iter().map(Piece::room).sum::<usize>() <= self.sizes.whole)
    }

    /// Number of bytes that a stage with a single segment reads and writes; 0 for a stage that transfers little.
    pub fn bytes_of(&self, stage: Stage) -> Result<u64, SortError> {
        let (passes, rows) = match stage {
            Stage::Prepare | Stage::Sample | Stage::Commit | Stage::Abandon => return Ok(0),
            Stage::Generate => (1, self.job.rows),
            Stage::Validate => (1, self.list_input()?.rows()),
            Stage::Sort | Stage::SortInMemory | Stage::Merge => (2, self.list_input()?.rows()),
        };
        Ok(passes * rows * ROW_BYTES as u64)
    }

    pub(super) fn scratch(&self) -> Result<Scratch, SortError> {
        Scratch::new(self.output_path)
    }

    fn list_input(&self) -> Result<Input, SortError> {
        let listed = Input::list(self.input, self.input_path)?;
        Ok(Input { check: self.job.verify.then(RowCheck::default), ..listed })
    }

    fn threads(&self) -> usize {
        self.job.threads as usize
    }

    /// Number of worker threads. They wait for disks half of the time.
    fn workers(&self) -> usize {
        2 * self.threads()
    }

    fn keep(&self) -> Keep {
        Keep::Output(self.job.replication)
    }

    fn buffers(&self, sets: usize) -> Result<Vec<Buffers>, SortError> {
        (0..sets).map(|_| Buffers::new(self.sizes.block)).collect()
    }

    fn prepare(&self) -> Result<StageOutcome, SortError> {
        self.job.refuse_nesting()?;
        if self.job.input.is_some() {
            self.list_input()?;
        }
        self.scratch()?.make_directory(self.output, self.owner)?;
        Ok(StageOutcome::default())
    }

    /// The numbers of the parts that this segment writes.
    fn own_parts(&self) -> Vec<usize> {
        let (k, n) = self.segment;
        (0..self.job.parts).filter(|part| part % n == k).map(|part| part as usize).collect()
    }

    fn generate(&self) -> Result<StageOutcome, SortError> {
        let growing = self.scratch()?.growing;
        let own = self.own_parts();
        let threads = self.threads().min(own.len());
        let memory = self.buffers(threads)?;
        let sum = process_in_parallel(&own, memory, |part, buffers| {
            let (first, end) = (self.first_row(part), self.first_row(part + 1));
            self.write_part(&join(&growing, &format!("part-m-{part:05}")), buffers, |spool, sum, generated| {
                let mut rows = Rows::from(first);
                while first + *generated < end {
                    // The piece is small enough to be in a processor's cache when its checksum is computed.
                    let buffer = spool.rows((end - first - *generated).min(ALIGNED_ROWS) as usize)?;
                    rows.fill(buffer);
                    sum.add_rows(buffer);
                    let now = (buffer.len() / ROW_BYTES) as u64;
                    *generated += now;
                    self.progress.rows(now);
                }
                Ok(())
            })
        })?;
        Ok(StageOutcome { checksum: Some(sum.to_string()), ..StageOutcome::default() })
    }

    /// Writes a part of the output. `fill` receives the part's spool and checksum, and the counter of the rows that it
    /// adds to the progress.
    fn write_part(
        &self,
        path: &str,
        buffers: Buffers,
        fill: impl Fn(&mut Spool<'_>, &mut Checksum, &mut u64) -> Result<(), SortError>,
    ) -> Result<(Checksum, Buffers), SortError> {
        let renew = || Buffers::new(self.sizes.block);
        rewrite_file((self.output, path), buffers, renew, |buffers| {
            std::thread::scope(|scope| {
                let mut spool = Spool::create(scope, self.output, path, self.keep(), buffers, self.progress)?;
                let (mut sum, mut counted) = (Checksum::default(), 0);
                let filled = fill(&mut spool, &mut sum, &mut counted);
                let written = spool.finish(filled).inspect_err(|_| self.progress.forget_rows(counted));
                written.map(|buffers| (sum, buffers))
            })
        })
    }

    /// The number of a part's first row, rounded as in Hadoop's `RangeInputFormat`.
    fn first_row(&self, part: usize) -> u64 {
        (self.job.rows as f64 * part as f64 / self.job.parts as f64).ceil() as u64
    }

    fn sample(&self) -> Result<StageOutcome, SortError> {
        let (input, (k, n)) = (self.list_input()?, self.segment);
        let all = input.pieces(ALIGNED_ROWS);
        let places = SAMPLED.min(all.len());
        let mut keys = Vec::new();
        let (mut buffer, mut reader) =
            (AlignedBuffer::new(ALIGNED_ROWS as usize * ROW_BYTES)?, PieceReader::new(self.input, &input));
        for place in (0..places).filter(|&place| place as u64 % n == k) {
            let piece = all[place * all.len() / places];
            reader.read(piece, &mut buffer[..piece.room()], self.progress)?;
            for row in buffer[..piece.bytes()].as_chunks::<ROW_BYTES>().0 {
                keys.extend_from_slice(&row[..KEY_BYTES]);
            }
            self.progress.rows(piece.rows);
        }
        write_all(self.output, &join(&self.scratch()?.path, &format!("sample-{k}")), &keys)?;
        Ok(StageOutcome::default())
    }

    fn sort(&self) -> Result<StageOutcome, SortError> {
        let (input, sizes, scratch) = (self.list_input()?, self.sizes, self.scratch()?.path);
        let splitters = self.splitters()?;
        let pieces = input.share(piece_rows(sizes.block), self.segment);
        let bytes: usize = pieces.iter().map(Piece::room).sum();
        let enough = (input.rows() as usize * ROW_BYTES / RUNS).max(CHUNK_ENOUGH);
        let chunk = sizes.chunk.min(enough).min(bytes.max(1));
        // If the runs cannot be merged, this fails now rather than after hours of sorting.
        self.sizes.plan_merges(bytes.div_ceil(chunk) * self.segment.1 as usize, self.job.parts as usize)?;
        let (fill, to_fill) = sync_channel(2);
        let (spill, to_spill) = sync_channel(2);
        for _ in 0..if bytes > chunk { 2 } else { 1 } {
            let _ = fill.send(Chunk::new(chunk)?);
        }
        let mut buffers = self.buffers(self.threads())?;
        let k = self.segment.0;
        let sum = std::thread::scope(|scope| {
            let input = &input;
            let reading = scope.spawn(move || {
                let (mut rest, mut sum) = (&pieces[..], Checksum::default());
                while !rest.is_empty() {
                    // If this fails, the writer has failed, and its error is reported.
                    let Ok(mut chunk) = to_fill.recv() else { return Err(SortError::stop()) };
                    let (now, later) = rest.split_at(chunk.room_for(rest));
                    if now.is_empty() {
                        return Err(SortError::new("internal error: a chunk has no room for a block"));
                    }
                    sum += chunk.fill_chunk(now, (self.input, input), None, self.workers(), self.progress)?;
                    rest = later;
                    if spill.send(chunk).is_err() {
                        return Err(SortError::stop());
                    }
                }
                Ok(sum)
            });
            let spilled = to_spill.iter().enumerate().try_for_each(|(number, mut chunk)| {
                let name = format!("{k}-{number}");
                let to = (self.output, &*scratch, &*name, Keep::Scratch(self.job.run_replication));
                runs::spill_runs(&mut chunk, &splitters, to, &mut buffers, self.progress)?;
                let _ = fill.send(chunk);
                Ok(())
            });
            drop((to_spill, fill));
            let read =
                reading.join().unwrap_or_else(|_| Err(SortError::new("internal error: the reading thread panicked")));
            spilled.and(read)
        })?;
        self.leave_sum(Side::Read, self.progress.done().rows, sum)
    }

    fn sort_in_memory(&self) -> Result<StageOutcome, SortError> {
        let (input, sizes, growing) = (self.list_input()?, self.sizes, self.scratch()?.growing);
        let splitters = self.splitters()?;
        let pieces = input.pieces(piece_rows(sizes.block));
        let counted = input.share(piece_rows(sizes.block), self.segment);
        let mut chunk = Chunk::new(pieces.iter().map(Piece::room).sum())?;
        if chunk.room_for(&pieces) < pieces.len() {
            return Err(SortError::new("internal error: the input does not fit into memory"));
        }
        // Every segment reads all rows and keeps only the rows of its parts. Each segment computes a share of the
        // checksum.
        let own = (self.segment.1 > 1).then(|| Own::new(&splitters, self.segment, &counted));
        let read = chunk.fill_chunk(&pieces, (self.input, &input), own.as_ref(), self.workers(), self.progress)?;
        self.leave_sum(Side::Read, counted.iter().map(|piece| piece.rows).sum(), read)?;
        let parts = chunk.parts(&splitters);
        let sorted = chunk.sort_parts();
        let all = self.own_parts();
        let memory = self.buffers(self.threads().min(all.len()))?;
        let sum = process_in_parallel(&all, memory, |part, buffers| {
            let path = join(&growing, &format!("part-r-{part:05}"));
            self.write_part(&path, buffers, |spool, sum, _| sorted.gather_rows(&parts[part], spool, Some(sum)))
        })?;
        self.leave_sum(Side::Written, self.progress.done().rows, sum)
    }

    fn merge(&self) -> Result<StageOutcome, SortError> {
        let scratch = self.scratch()?;
        let runs = runs::list(self.output, &scratch.path)?;
        let own = self.own_parts();
        let slices = |runs: &[Run], part: usize| {
            runs.iter().flat_map(|run| &run.slices).filter(|slice| slice.part == part).count()
        };
        let most = own.iter().map(|&part| slices(&runs, part)).max().unwrap_or_default();
        let (merges, block) = self.sizes.plan_merges(most, own.len())?;
        let memory = || -> Result<MergeMemory, SortError> {
            let read = (0..most * crate::sort::read_ahead::BUFFERS).map(|_| AlignedBuffer::new(block));
            Ok(MergeMemory { read: read.collect::<Result<_, _>>()?, write: Buffers::new(self.sizes.block)? })
        };
        let all = (0..merges).map(|_| memory()).collect::<Result<_, _>>()?;
        let sum = process_in_parallel(&own, all, |part, item| {
            let path = join(&scratch.growing, &format!("part-r-{part:05}"));
            rewrite_file((self.output, &path), item, memory, |memory| {
                merge::merge(self.output, &runs, part, (&path, self.keep()), memory, self.progress)
            })
        })?;
        self.leave_sum(Side::Written, self.progress.done().rows, sum)
    }

    fn validate(&self) -> Result<StageOutcome, SortError> {
        let (input, sizes) = (self.list_input()?, self.sizes);
        // All segments read the same directory, so only one of them reports the warning.
        let warning = input.complete()?.filter(|_| self.segment.0 == 0);
        let pieces = input.share(piece_rows(sizes.block), self.segment);
        let spans = validate::check_pieces((self.input, &input), &pieces, self.workers(), self.progress)?;
        if !self.output_path.is_empty() {
            self.leave_file("spans-", &spans)?;
        }
        if self.segment.1 > 1 {
            return Ok(StageOutcome { warning, ..StageOutcome::default() });
        }
        let verdict = validate::fold_spans(&input, spans)?;
        Ok(StageOutcome { checksum: Some(verdict.checksum.clone()), verdict: Some(verdict), warning })
    }

    fn commit(&self) -> Result<StageOutcome, SortError> {
        let scratch = self.scratch()?;
        let mut outcome = StageOutcome::default();
        let spans = self.list_files("spans-")?;
        if !spans.is_empty() {
            let mut all: Vec<RowSpan> = Vec::new();
            for (path, bytes) in spans {
                let own: Vec<RowSpan> = serde_json::from_slice(&bytes)
                    .map_err(|error| SortError::new(format!("cannot read the result in {path}: {error}")))?;
                all.extend(own);
            }
            let verdict = validate::fold_spans(&self.list_input()?, all)?;
            write_all(self.output, &join(&scratch.growing, "part-r-00000"), report(&verdict).as_bytes())?;
            outcome = StageOutcome { checksum: Some(verdict.checksum.clone()), verdict: Some(verdict), warning: None };
        }
        if let (Some(read), Some(written)) = (self.sums(Side::Read)?, self.sums(Side::Written)?) {
            if read != written {
                return Err(SortError::new(format!(
                    "the output differs from the input: {} rows with checksum {}, expected {} with {}",
                    written.0, written.1, read.0, read.1
                ))
                .hint("sort again with all segments; if it happens again, check memory, disks and network"));
            }
            outcome.checksum = Some(written.1.to_string());
        }
        scratch.commit_output(self.output)?;
        Ok(outcome)
    }
}

/// The report in TeraValidate's format.
fn report(verdict: &Verdict) -> String {
    let errors: String = verdict.faults.first.iter().map(|fault| format!("error\t{fault}\n")).collect();
    format!("{errors}checksum\t{}\n", verdict.checksum)
}

fn piece_rows(block: usize) -> u64 {
    (block / ROW_BYTES) as u64
}
