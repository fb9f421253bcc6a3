//! Sorts of all kinds of keys, in memory and external, by one segment and by several, against the standard library's.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

use loadstone_storage::fs::local::Direct;
use loadstone_storage::sort::SortError;
use loadstone_storage::sort::files::local;
use loadstone_storage::sort::job::{Job, Sizes, Stage};
use loadstone_storage::sort::progress::Progress;
use loadstone_storage::sort::rows::{KEY_BYTES, ROW_BYTES};
use loadstone_storage::sort::scratch::Owner;
use loadstone_storage::sort::stage::{Outcome, Task};
use proptest::prelude::*;

/// The least that can be read at once, so that a few thousand rows make many runs.
const BLOCK: usize = 102_400;

type Row = [u8; ROW_BYTES];

#[derive(Clone, Copy, Debug)]
enum Keys {
    Random,
    Presorted,
    Reversed,
    Equal,
    Zipf,
    /// Equal in what is compared first, and different in the last byte.
    LastByte,
}

fn rows(keys: Keys, count: usize, seed: u64) -> Vec<Row> {
    let mut state = seed | 1;
    let mut random = || {
        // xorshift64*: any stream of numbers will do.
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
                // The k-th most frequent key has about 1/k of the rows.
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
}

impl Bench {
    fn new(rows: &[Row], files: usize, parts: u64, chunk_blocks: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write(rows, files, &directory.path().join("in"));
        let path = |name: &str| Some(directory.path().join(name).to_str().unwrap().to_owned());
        let job = Job { input: path("in"), output: path("out"), parts, threads: 2, ..Job::default() };
        let sizes = Sizes { block: BLOCK, chunk: chunk_blocks * BLOCK, ..job.sizes() };
        Self { directory, job, sizes }
    }

    fn stage(&self, stage: Stage, n: u64) -> Result<Outcome, SortError> {
        let local = local(Direct::Off);
        let run = |k: u64| {
            let progress = Progress::default();
            let (input, output) = (self.job.input.as_deref().unwrap(), self.job.output.as_deref().unwrap());
            let task = Task {
                job: &self.job,
                sizes: self.sizes,
                input: &local,
                input_path: input,
                output: &local,
                output_path: output,
                segment: (k, n),
                owner: &Owner::this_process(),
                progress: &progress,
            };
            task.run(stage)
        };
        std::thread::scope(|scope| {
            let run = &run;
            let segments: Vec<_> = (0..n).map(|k| scope.spawn(move || run(k))).collect();
            segments.into_iter().map(|segment| segment.join().unwrap()).collect::<Result<Vec<_>, _>>()
        })
        .map(|mut outcomes| outcomes.remove(0))
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
    // TeraSort's order of rows with equal keys is not defined; that they are the same rows is.
    let mut sorted = output;
    input.sort_unstable();
    sorted.sort_unstable();
    assert!(input == sorted, "the output has other rows than the input");
}

fn any_keys() -> impl Strategy<Value = Keys> {
    prop_oneof![
        Just(Keys::Random),
        Just(Keys::Presorted),
        Just(Keys::Reversed),
        Just(Keys::Equal),
        Just(Keys::Zipf),
        Just(Keys::LastByte)
    ]
}

/// Mostly thousands of rows, and each of the small numbers.
fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..3, 1_020usize..1_030, 2_000usize..9_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_external_sort_is_the_standard_librarys(
        kind in any_keys(), count in any_count(), files in 1usize..4, parts in 1u64..6, chunk in 1usize..4,
        segments in prop_oneof![Just(1u64), Just(2), Just(7)], seed: u64,
    ) {
        let input = rows(kind, count, seed);
        let bench = Bench::new(&input, files, parts, chunk);
        bench.stage(Stage::Prepare, 1).unwrap();
        for stage in [Stage::Sample, Stage::Sort, Stage::Merge] {
            bench.stage(stage, segments).unwrap();
        }
        bench.stage(Stage::Commit, 1).unwrap();
        assert_sorted(input, bench.output());
        prop_assert_eq!(bench.names(), ["in", "out"], "nothing else is left");
    }

    #[test]
    fn a_sort_in_memory_is_the_standard_librarys(
        kind in any_keys(), count in any_count(), files in 1usize..4, parts in 1u64..6, seed: u64,
    ) {
        let input = rows(kind, count, seed);
        let bench = Bench::new(&input, files, parts, 1);
        for stage in [Stage::Prepare, Stage::Sample, Stage::SortInMemory, Stage::Commit] {
            bench.stage(stage, 1).unwrap();
        }
        assert_sorted(input, bench.output());
        prop_assert_eq!(bench.names(), ["in", "out"], "nothing else is left");
    }

    #[test]
    fn validation_finds_what_is_out_of_order_whatever_the_segments(
        kind in any_keys(), count in 2usize..5_000, segments in prop_oneof![Just(1u64), Just(2), Just(7)], swap: prop::sample::Index, seed: u64,
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
            let wanted = format!("part-m-{:05}", (at + 1) / per_file);
            prop_assert!(fault.file.ends_with(&wanted), "{} {}", fault.file, wanted);
            prop_assert_eq!(fault.row, ((at + 1) % per_file) as u64);
        }
    }
}

#[test]
fn a_segment_that_did_not_run_is_noticed() {
    let bench = Bench::new(&rows(Keys::Random, 5_000, 1), 2, 2, 1);
    bench.stage(Stage::Prepare, 1).unwrap();
    bench.stage(Stage::Sample, 1).unwrap();
    bench.stage(Stage::Sort, 2).unwrap();
    let bench_of_one = Bench { job: Job { parts: 2, ..bench.job.clone() }, ..bench };
    // Segment 0 of 2 merges part 0, and nobody part 1.
    let local = local(Direct::Off);
    let progress = Progress::default();
    let task = Task {
        job: &bench_of_one.job,
        sizes: bench_of_one.sizes,
        input: &local,
        input_path: bench_of_one.job.input.as_deref().unwrap(),
        output: &local,
        output_path: bench_of_one.job.output.as_deref().unwrap(),
        segment: (0, 2),
        owner: &Owner::this_process(),
        progress: &progress,
    };
    task.run(Stage::Merge).unwrap();
    let error = bench_of_one.stage(Stage::Commit, 1).unwrap_err();
    assert!(error.message.contains("differs from the input"), "{error}");
    assert!(!bench_of_one.directory.path().join("out").exists());
}

#[test]
fn a_flipped_bit_in_a_run_is_noticed() {
    let bench = Bench::new(&rows(Keys::Random, 5_000, 1), 2, 2, 1);
    bench.stage(Stage::Prepare, 1).unwrap();
    bench.stage(Stage::Sample, 1).unwrap();
    bench.stage(Stage::Sort, 1).unwrap();
    let run = bench.directory.path().join(".out.loadstone/run-0-1-0");
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
    let file = bench.directory.path().join("in/part-m-00001");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 30]).unwrap();
    let error = bench.stage(Stage::Prepare, 1).unwrap_err();
    assert!(error.message.contains("part-m-00001 is truncated"), "{error}");
    assert!(error.message.contains("offset 14900 and has 70 of 100 bytes"), "{error}");
    assert_eq!(bench.names(), ["in"]);
}
