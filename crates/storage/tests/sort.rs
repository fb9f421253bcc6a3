//! Tests of sorts in memory and external sorts, with all types of keys, by one segment and by several segments. The
//! results are compared with sorts by the standard library.

#![allow(clippy::unwrap_used, reason = "test helpers fail as tests do")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use loadstone_storage::fs::FileStat;
use loadstone_storage::fs::local::Direct;
use loadstone_storage::sort::SortError;
use loadstone_storage::sort::checksum::Checksum;
use loadstone_storage::sort::files::{Append, Files, ReadAt, local};
use loadstone_storage::sort::job::{Job, Stage};
use loadstone_storage::sort::memory::Sizes;
use loadstone_storage::sort::progress::{Done, Progress};
use loadstone_storage::sort::rows::{KEY_BYTES, ROW_BYTES, Rows};
use loadstone_storage::sort::scratch::Owner;
use loadstone_storage::sort::task::{SortTask, StageOutcome};
use proptest::prelude::*;

/// The smallest block size, so that a few thousand rows give many runs.
const BLOCK: usize = 102_400;

type Row = [u8; ROW_BYTES];

const SEGMENTS: [u64; 3] = [1, 2, 7];
/// The stages between the first stage and the last.
const EXTERNAL: &[Stage] = &[Stage::Sample, Stage::Sort, Stage::Merge];
const IN_MEMORY: &[Stage] = &[Stage::Sample, Stage::SortInMemory];

#[derive(Clone, Copy, Debug)]
enum Keys {
    Random,
    Presorted,
    Reversed,
    Equal,
    Zipf,
    /// Keys that differ only in the last byte.
    LastByte,
}

fn rows(keys: Keys, count: usize, seed: u64) -> Vec<Row> {
    let mut state = seed | 1;
    let mut random = || {
        // xorshift64*; any random numbers would be suitable.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    (0..count)
        .map(|i| {
            let mut row = [0; ROW_BYTES];
            let head = match keys {
                Keys::Random => random(),
                Keys::Presorted => i as u64,
                Keys::Reversed => (count - i) as u64,
                Keys::Equal | Keys::LastByte => 7,
                // About 1/k of the rows have a key of at least k.
                Keys::Zipf => (1.0 / (random() as f64 / u64::MAX as f64 + 1e-4)) as u64,
            };
            row[..8].copy_from_slice(&head.to_be_bytes());
            if matches!(keys, Keys::Random | Keys::LastByte) {
                row[9] = random() as u8;
            }
            row[KEY_BYTES..18].copy_from_slice(&(i as u64).to_be_bytes());
            row
        })
        .collect()
}

fn write(rows: &[Row], files: usize, directory: &Path) {
    fs::create_dir(directory).unwrap();
    for (i, rows) in rows.chunks(rows.len().div_ceil(files).max(1)).enumerate() {
        fs::write(directory.join(format!("part-m-{i:05}")), rows.concat()).unwrap();
    }
}

struct Bench {
    directory: tempfile::TempDir,
    job: Job,
    sizes: Sizes,
    files: Box<dyn Files>,
}

impl Bench {
    fn new(rows: &[Row], files: usize, parts: u64, chunk_blocks: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write(rows, files, &directory.path().join("in"));
        let path = |name: &str| Some(directory.path().join(name).to_str().unwrap().to_owned());
        let job = Job { input: path("in"), output: path("out"), parts, threads: 2, ..Job::default() };
        let sizes = Sizes { block: BLOCK, chunk: chunk_blocks * BLOCK, ..Sizes::new(&job) };
        Self { directory, job, sizes, files: Box::new(local(Direct::Off)) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn segment(&self, stage: Stage, segment: (u64, u64)) -> Result<(StageOutcome, Done), SortError> {
        let progress = Progress::default();
        let [input, output] = [&self.job.input, &self.job.output].map(|place| place.as_deref().unwrap_or("."));
        let task = SortTask {
            job: &self.job,
            sizes: self.sizes,
            input: &*self.files,
            input_path: input,
            output: &*self.files,
            output_path: output,
            segment,
            owner: &Owner::this_process(),
            progress: &progress,
        };
        task.run(stage).map(|outcome| (outcome, progress.done()))
    }

    fn stage(&self, stage: Stage, n: u64) -> Result<StageOutcome, SortError> {
        std::thread::scope(|scope| {
            let segments: Vec<_> = (0..n).map(|k| scope.spawn(move || self.segment(stage, (k, n)))).collect();
            segments.into_iter().map(|segment| segment.join().unwrap()).collect::<Result<Vec<_>, _>>()
        })
        .map(|mut ended| ended.remove(0).0)
    }

    /// Sorts with this number of segments.
    fn sort(&self, stages: &[Stage], segments: u64) {
        self.stage(Stage::Prepare, 1).unwrap();
        for &stage in stages {
            self.stage(stage, segments).unwrap();
        }
        self.stage(Stage::Commit, 1).unwrap();
        assert_eq!(self.names(), ["in", "out"], "nothing else is left");
    }

    /// The rows of the output, part by part.
    fn output(&self) -> Vec<Row> {
        let directory = self.directory.path().join("out");
        assert!(directory.join("_SUCCESS").exists());
        let parts = (0..self.job.parts).map(|part| fs::read(directory.join(format!("part-r-{part:05}"))).unwrap());
        parts.flat_map(|part| part.as_chunks().0.to_vec()).collect()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn keys(rows: &[Row]) -> Vec<&[u8]> {
    rows.iter().map(|row| &row[..KEY_BYTES]).collect()
}

fn assert_sorted(mut input: Vec<Row>, output: Vec<Row>) {
    input.sort_by(|a, b| a[..KEY_BYTES].cmp(&b[..KEY_BYTES]));
    assert!(keys(&input) == keys(&output), "the keys are not as the standard library sorts them");
    // TeraSort does not define the order of rows with equal keys, but the set of rows must be the same.
    let mut sorted = output;
    input.sort_unstable();
    sorted.sort_unstable();
    assert!(input == sorted, "the rows of the output differ from the rows of the input");
}

const KINDS: [Keys; 6] = [Keys::Random, Keys::Presorted, Keys::Reversed, Keys::Equal, Keys::Zipf, Keys::LastByte];

fn any_keys() -> impl Strategy<Value = Keys> {
    prop::sample::select(&KINDS[..])
}

/// The number of rows: 0 to 2, about a thousand, or several thousand.
fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..3, 1_020usize..1_030, 2_000usize..9_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_sort_is_the_standard_librarys(
        kind in any_keys(), count in any_count(), files in 1usize..4, parts in 1u64..10, chunk in 1usize..4,
        stages in prop::sample::select(&[EXTERNAL, IN_MEMORY][..]), segments in prop::sample::select(&SEGMENTS[..]),
        seed: u64,
    ) {
        let input = rows(kind, count, seed);
        let bench = Bench::new(&input, files, parts, chunk);
        bench.sort(stages, segments);
        assert_sorted(input, bench.output());
    }

    #[test]
    fn validation_finds_disorder_with_any_segments(
        kind in any_keys(), count in 2usize..5_000, segments in prop::sample::select(&SEGMENTS[..]), swap: prop::sample::Index, seed: u64,
    ) {
        let mut input = rows(kind, count, seed);
        input.sort_unstable();
        let at = swap.index(count - 1);
        let differ = input[at][..KEY_BYTES] != input[at + 1][..KEY_BYTES];
        input.swap(at, at + 1);
        let duplicates = input.windows(2).filter(|pair| pair[0][..KEY_BYTES] == pair[1][..KEY_BYTES]).count();
        let misorders = input.windows(2).filter(|pair| pair[0][..KEY_BYTES] > pair[1][..KEY_BYTES]).count();
        let bench = Bench::new(&input, 3, 1, 1);
        bench.stage(Stage::Prepare, 1).unwrap();
        bench.stage(Stage::Validate, segments).unwrap();
        let verdict = bench.stage(Stage::Commit, 1).unwrap().verdict.unwrap();
        prop_assert_eq!(verdict.rows, count as u64);
        prop_assert_eq!(verdict.duplicates, duplicates as u64);
        prop_assert_eq!(verdict.faults.count, misorders as u64);
        prop_assert_eq!(misorders > 0, differ);
        if let Some(fault) = verdict.faults.first.first() {
            let per_file = count.div_ceil(3);
            let expected = format!("part-m-{:05}", (at + 1) / per_file);
            prop_assert!(fault.file.ends_with(&expected), "{} {}", fault.file, expected);
            prop_assert_eq!(fault.row, ((at + 1) % per_file) as u64);
        }
    }
}

/// Sorts each type of keys with each number of segments, in memory and externally, with no rows, one row, one block and
/// several blocks.
#[test]
fn sort_equals_the_standard_library() {
    for kind in KINDS {
        for stages in [EXTERNAL, IN_MEMORY] {
            for segments in SEGMENTS {
                for count in [0, 1, 1_024, 6_000] {
                    let input = rows(kind, count, 7);
                    let bench = Bench::new(&input, 2, 3, 1);
                    bench.sort(stages, segments);
                    assert_sorted(input, bench.output());
                }
            }
        }
    }
}

#[test]
fn a_segment_that_did_not_run_is_noticed() {
    let bench = Bench::new(&rows(Keys::Random, 5_000, 1), 2, 2, 1);
    bench.stage(Stage::Prepare, 1).unwrap();
    bench.stage(Stage::Sample, 1).unwrap();
    bench.stage(Stage::Sort, 2).unwrap();
    // Segment 0 of 2 merges part 0, and no segment merges part 1.
    bench.segment(Stage::Merge, (0, 2)).unwrap();
    let error = bench.stage(Stage::Commit, 1).unwrap_err();
    assert!(error.message.contains("differs from the input"), "{error}");
    assert!(!bench.path("out").exists());
}

#[test]
fn disk_sort_of_one_segment_is_reported() {
    let bench = Bench::new(&rows(Keys::Random, 5_000, 1), 2, 2, 1);
    bench.stage(Stage::Prepare, 1).unwrap();
    bench.stage(Stage::Sample, 1).unwrap();
    bench.segment(Stage::SortInMemory, (0, 2)).unwrap();
    let error = bench.stage(Stage::Commit, 1).unwrap_err();
    assert!(error.message.contains("differs from the input"), "{error}");
}

/// A file system that loses its servers in the first attempts to write each file: after some buffers, or at its end.
struct Losing {
    files: Box<dyn Files>,
    times: usize,
    after: usize,
    lost: Mutex<HashMap<String, usize>>,
}

struct Lost(Box<dyn Append>, usize);

impl Append for Lost {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), SortError> {
        if self.1 == 0 {
            return Err(SortError { rewrite: true, ..SortError::new("the servers are lost") });
        }
        self.1 -= 1;
        self.0.write_bytes(bytes)
    }

    fn finish_file(self: Box<Self>, _: bool) -> Result<(), SortError> {
        Err(SortError { rewrite: true, ..SortError::new("the servers are lost") })
    }
}

impl Files for Losing {
    fn create_file(&self, path: &str, replicas: Option<u16>) -> Result<Box<dyn Append>, SortError> {
        let mut lost = self.lost.lock().unwrap();
        let times = lost.entry(path.to_owned()).or_default();
        *times += 1;
        let file = self.files.create_file(path, replicas)?;
        Ok(if *times > self.times { file } else { Box::new(Lost(file, self.after)) })
    }

    fn list_files(&self, path: &str) -> Result<Option<Vec<FileStat>>, SortError> {
        self.files.list_files(path)
    }

    fn has_file(&self, path: &str) -> Result<bool, SortError> {
        self.files.has_file(path)
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError> {
        self.files.open_file(path)
    }

    fn make_directory(&self, path: &str) -> Result<(), SortError> {
        self.files.make_directory(path)
    }

    fn rename_file(&self, from: &str, to: &str) -> Result<(), SortError> {
        self.files.rename_file(from, to)
    }

    fn remove_file(&self, path: &str) -> Result<(), SortError> {
        self.files.remove_file(path)
    }

    fn sync_directory(&self, path: &str) -> Result<(), SortError> {
        self.files.sync_directory(path)
    }
}

fn files_losing_writes(times: usize, after: usize) -> Box<dyn Files> {
    Box::new(Losing { files: Box::new(local(Direct::Off)), times, after, lost: Mutex::default() })
}

#[test]
fn file_is_rewritten_after_server_loss() {
    let input = rows(Keys::Random, 6_000, 1);
    for stages in [EXTERNAL, IN_MEMORY] {
        for after in [0, 1, usize::MAX] {
            let bench = Bench { files: files_losing_writes(2, after), ..Bench::new(&input, 2, 3, 1) };
            bench.sort(stages, 2);
            assert_sorted(input.clone(), bench.output());
        }
    }
    let bench = Bench { files: files_losing_writes(3, 1), ..Bench::new(&input, 2, 3, 1) };
    bench.stage(Stage::Prepare, 1).unwrap();
    assert_eq!(bench.stage(Stage::Sample, 1).unwrap_err().message, "the servers are lost");
}

#[test]
fn rewritten_file_counts_its_rows_once() {
    let mut bench = Bench { files: files_losing_writes(2, 1), ..Bench::new(&[], 1, 3, 1) };
    (bench.job.input, bench.job.rows) = (None, 5_000);
    bench.stage(Stage::Prepare, 1).unwrap();
    let (outcome, done) = bench.segment(Stage::Generate, (0, 1)).unwrap();
    let (mut expected, mut sum) = (vec![0; 5_000 * ROW_BYTES], Checksum::default());
    Rows::from(0).fill(&mut expected);
    sum.add_rows(&expected);
    assert_eq!((outcome.checksum, done.rows), (Some(sum.to_string()), 5_000));
    let parts = (0..3).map(|part| fs::read(bench.path(&format!(".out.loadstone/output/part-m-{part:05}"))).unwrap());
    assert!(parts.flatten().eq(expected));
}

#[test]
fn a_flipped_bit_in_a_run_is_noticed() {
    let bench = Bench::new(&rows(Keys::Random, 5_000, 1), 2, 2, 1);
    bench.stage(Stage::Prepare, 1).unwrap();
    bench.stage(Stage::Sample, 1).unwrap();
    bench.stage(Stage::Sort, 1).unwrap();
    let run = bench.path(".out.loadstone/run-0-1-0");
    let mut bytes = fs::read(&run).unwrap();
    bytes[50] ^= 4;
    fs::write(&run, bytes).unwrap();
    bench.stage(Stage::Merge, 1).unwrap();
    let error = bench.stage(Stage::Commit, 1).unwrap_err();
    assert!(error.message.contains("differs from the input"), "{error}");
}

#[test]
fn a_truncated_input_is_named_with_its_place() {
    let bench = Bench::new(&rows(Keys::Random, 300, 1), 2, 1, 1);
    let file = bench.path("in/part-m-00001");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 30]).unwrap();
    let error = bench.stage(Stage::Prepare, 1).unwrap_err();
    assert!(error.message.contains("part-m-00001 is truncated"), "{error}");
    assert!(error.message.contains("offset 14900 and has 70 of 100 bytes"), "{error}");
    assert_eq!(bench.names(), ["in"]);
}
