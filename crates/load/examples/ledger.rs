//! Measures the cost of the ledger: the workers' CPU time per write, ns.
//!
//! Usage: `cargo run --release -p loadstone-load --example ledger`

// The purpose of this program is to print, and it reports failures by panicking.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::ledger::{Ledger, LedgerLayout, LedgerRun, WriteState, Writes};
use loadstone_load::value_length::Length;
use loadstone_load::{Operation, Segment, Workload};

const N: u64 = 8_000_000;
const REPEATS: usize = 7;

fn core_spec(versions: bool, write_all_fields: bool) -> CoreSpec {
    CoreSpec {
        table: "usertable".to_owned(),
        records: 1_000_000,
        insert_start: 0,
        insert_count: 1_000_000,
        field_count: 10,
        field_name_prefix: "field".to_owned(),
        field_length: Length::Constant { bytes: 100 },
        read_all_fields: true,
        write_all_fields,
        integrity: false,
        versions,
        mix: Mix { read: 0.5, update: 0.5, ..Mix::default() },
        keys: KeyDistribution::Uniform,
        insert_order: InsertOrder::Hashed,
        zero_padding: 1,
        scan_length: Length::Uniform { min: 1, max: 100 },
        operations: Some(N),
        insert_lag: 2,
    }
}

/// Prints the median, over several repeats, of the workers' total CPU time per operation.
fn measure_part(name: &str, threads: u64, measure: impl Fn(u64, &AtomicU64) -> f64 + Sync) {
    let mut ns: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let claims = AtomicU64::new(0);
            let (measure, claims) = (&measure, &claims);
            let of_all: Vec<f64> = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|worker| scope.spawn(move || measure(worker, claims))).collect();
                workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
            });
            of_all.iter().sum::<f64>() / N as f64
        })
        .collect();
    ns.sort_by(f64::total_cmp);
    println!("{name:<52} {threads} {:>7.1}   ({:.1} to {:.1})", ns[REPEATS / 2], ns[0], ns[REPEATS - 1]);
}

/// CPU time of the calling thread, ns. Wall time is unsuitable, because there are more threads than processors, and the
/// machine has other work.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Claims operations until none are left, as the engine does. Returns the total time, ns.
fn measure_claims(claims: &AtomicU64, mut measure: impl FnMut(u64)) -> f64 {
    let start = cpu_ns();
    loop {
        let number = claims.fetch_add(1, Ordering::Relaxed);
        if number >= N {
            return cpu_ns() - start;
        }
        measure(number);
    }
}

fn main() {
    println!("{:<52} threads, ns   (least to most of {REPEATS})", "part");
    let layout = LedgerLayout { writes: N, clients: 8, workers: 8, ticks: 0, exceptions: 0 };
    let memory: Vec<AtomicU64> =
        std::iter::repeat_with(AtomicU64::default).take(layout.word_count().expect("small")).collect();
    let ledger = Ledger::create_in(&memory[..], layout, LedgerRun::default(), Segment::default()).expect("a ledger");
    let plain: Vec<AtomicU64> = std::iter::repeat_with(AtomicU64::default).take(N as usize / 32).collect();
    let run = CoreRun::new(core_spec(true, false), 1).expect("a mix");
    for threads in [1, 2, 8] {
        measure_part("claim alone", threads, |_, claims| measure_claims(claims, |number| _ = black_box(number)));
        measure_part("claim, one fetch_or a write", threads, |_, claims| {
            measure_claims(claims, |number| {
                plain[number as usize / 32].fetch_or(1 << (number % 32 * 2), Ordering::Relaxed);
            })
        });
        measure_part("claim, ledger", threads, |worker, claims| {
            let pen = ledger.create_pen(worker as usize);
            measure_claims(claims, |number| pen.note_state(number, WriteState::Acknowledged))
        });
        measure_part("claim, number of the write, ledger", threads, |worker, claims| {
            let pen = ledger.create_pen(worker as usize);
            measure_claims(claims, |index| {
                if let Some(number) = run.find_number(index) {
                    pen.note_state(number, WriteState::Acknowledged);
                }
            })
        });
    }
    for versions in [false, true] {
        let with = if versions { "with versions" } else { "without" };
        for all in [false, true] {
            let workload = CoreRun::new(core_spec(versions, all), 1).expect("a mix");
            let fields = if all { "all fields" } else { "one field" };
            measure_part(&format!("fill, half updates of {fields}, {with}"), 1, |_, claims| {
                let mut operation = Operation::default();
                measure_claims(claims, |index| {
                    workload.fill_operation(index, &mut operation);
                    black_box(&operation);
                })
            });
        }
        let load = CoreLoad::new(core_spec(versions, false), 1);
        measure_part(&format!("fill, load of 10 x 100 bytes, {with}"), 1, |_, claims| {
            let mut operation = Operation::default();
            measure_claims(claims, |index| {
                load.fill_operation(index, &mut operation);
                black_box(&operation);
            })
        });
    }
}
