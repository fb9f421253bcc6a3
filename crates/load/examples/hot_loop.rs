//! Measures the cost of each part of the hot loop, in ns per operation, for the table in docs/concepts/performance.md.
//!
//! Usage: `cargo run --release -p loadstone-load --example hot_loop`

// The purpose of this program is to print, and it reports failures by panicking.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::histogram::Grid;
use loadstone_load::keys::{Chooser, Existing, InsertOrder, KeyDistribution, KeyRange, write_key};
use loadstone_load::kind_sequence::KindSequence;
use loadstone_load::pace::{Arrival, Pace, PaceCursor, PaceSpec, RatePiece};
use loadstone_load::random::{Draws, Purpose};
use loadstone_load::text_pool::Pool;
use loadstone_load::value_length::Length;
use loadstone_load::{Kind, Operation, Workload};

const N: u64 = 2_000_000;
const REPEATS: usize = 7;

/// Prints the median and the range over several repeats; the range shows how busy the machine was.
fn measure_part(name: &str, mut run: impl FnMut(u64)) {
    let mut ns: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            (0..N).for_each(&mut run);
            start.elapsed().as_nanos() as f64 / N as f64
        })
        .collect();
    ns.sort_by(f64::total_cmp);
    println!("{name:<44} {:>7.1}   ({:.1} to {:.1})", ns[REPEATS / 2], ns[0], ns[REPEATS - 1]);
}

fn core_spec(mix: Mix, operations: u64) -> CoreSpec {
    CoreSpec {
        table: "usertable".to_owned(),
        records: 1_000_000,
        insert_start: 0,
        insert_count: 1_000_000,
        field_count: 10,
        field_name_prefix: "field".to_owned(),
        field_length: Length::Constant { bytes: 100 },
        read_all_fields: true,
        write_all_fields: false,
        integrity: false,
        versions: false,
        mix,
        keys: KeyDistribution::Zipfian,
        insert_order: InsertOrder::Hashed,
        zero_padding: 1,
        scan_length: Length::Uniform { min: 1, max: 100 },
        operations: Some(operations),
        insert_lag: 2,
    }
}

fn main() {
    println!("{:<44} {:>7}   (least to most of {REPEATS})", "part", "ns");
    measure_part("clock, one reading", |_| {
        black_box(Instant::now());
    });
    let kinds = KindSequence::new(1, &[(Kind::Read, 0.5), (Kind::Update, 0.5)], &[], None).expect("weights");
    measure_part("kind of operation", |i| {
        black_box(kinds.kind(i));
    });
    let range = KeyRange { start: 0, count: 1_000_000, growth: 0 };
    let all = Existing { first: 0, last: 999_999 };
    for (name, distribution) in [
        ("key choice, uniform", KeyDistribution::Uniform),
        ("key choice, zipfian (YCSB's)", KeyDistribution::Zipfian),
        ("key choice, latest", KeyDistribution::Latest),
        ("key choice, truezipfian", KeyDistribution::true_zipfian()),
    ] {
        let chooser = Chooser::new(&distribution, range, 1_000_000);
        measure_part(name, |i| {
            black_box(chooser.choose_key(i, all, &mut Draws::new(1, i, Purpose::Key)));
        });
    }
    let mut key = Vec::new();
    measure_part("key text", |i| {
        write_key(&mut key, i, InsertOrder::Hashed, 1);
        black_box(&key);
    });
    let pool = Pool::new(1);
    let mut field = [0u8; 100];
    measure_part("value, one field of 100 bytes", |i| {
        pool.fill_bytes(&mut field, &mut pool.draw_place(&mut Draws::new(1, i, Purpose::Value), 0));
        black_box(&field);
    });
    let grid = Grid::default();
    measure_part("histogram, one value", |i| grid.record_value(1_000 + (i & 0xfff)));
    for (name, arrival) in [("due time, uniform", Arrival::Uniform), ("due time, poisson", Arrival::Poisson)] {
        let rate = vec![RatePiece { from: 1e5, to: 1e5, seconds: 0.0 }];
        let pace = Pace::new(&PaceSpec::Open { rate, arrival }, 1).expect("a rate").expect("open");
        let mut cursor = PaceCursor::default();
        measure_part(name, |i| {
            black_box(pace.due_ns(i, &mut cursor));
        });
    }
    let mut operation = Operation::default();
    let read = CoreRun::new(core_spec(Mix { read: 1.0, ..Mix::default() }, N), 1).expect("a mix");
    measure_part("whole operation, workload C", |i| {
        read.fill_operation(i, &mut operation);
        black_box(&operation);
    });
    let update = CoreRun::new(core_spec(Mix { read: 0.5, update: 0.5, ..Mix::default() }, N), 1).expect("a mix");
    measure_part("whole operation, workload A", |i| {
        update.fill_operation(i, &mut operation);
        black_box(&operation);
    });
    let load = CoreLoad::new(core_spec(Mix::default(), N), 1);
    measure_part("whole operation, load of 10 x 100 bytes", |i| {
        load.fill_operation(i, &mut operation);
        black_box(&operation);
    });
}
