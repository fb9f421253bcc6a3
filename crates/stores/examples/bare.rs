//! The bare loop: a store processes exactly the engine's keys and values, but no latencies are measured.
//!
//! `bare < SPEC` reads a TrialSpec, performs its operations on the store without clock, histogram or pacing, and prints
//! the CPU time in ns. `make bench` compares the engine with it. `bare timed` reads the processor's counter twice per
//! operation and records the difference in a histogram: this is the minimum cost of measuring.

// This is a program: its purpose is to print, and it reports failures by panics.
#![allow(clippy::print_stdout)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec};
use loadstone_load::histogram::Grid;
use loadstone_load::{Kind, Operation, RecordWorkload, Row};
use loadstone_stores::key_value::KeyValue;
use loadstone_stores::{Durability, Options};

/// Number of operations that a thread claims at once: as many as the engine's clients claim in a closed loop.
const STRIPE: u64 = 32;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let spec: serde_json::Value = serde_json::from_str(&std::io::read_to_string(std::io::stdin())?)?;
    let mut workload = spec["work"].clone();
    if let Some(object) = workload.as_object_mut() {
        object.remove("type");
    }
    let core: CoreSpec = serde_json::from_value(workload)?;
    let seed = spec["seed"].as_u64().ok_or("no seed")?;
    let options = Options {
        properties: serde_json::from_value(spec["store"]["properties"].clone())?,
        durability: spec["store"]["durability"].as_str().and_then(Durability::parse).unwrap_or_default(),
        table: core.table.clone(),
        create: spec["phase"] == "load",
        clients: spec["clients"].as_u64().unwrap_or(1) as usize,
    };
    let ns = if spec["phase"] == "load" {
        run_on_store(&spec, &options, &CoreLoad::new(core, seed))?
    } else {
        run_on_store(&spec, &options, &CoreRun::new(core, seed).ok_or("nothing to do")?)?
    };
    println!("{ns}");
    Ok(())
}

fn run_on_store<W: RecordWorkload>(spec: &serde_json::Value, options: &Options, workload: &W) -> Result<u64, Failure> {
    use loadstone_stores::{fjall::FjallEngine, lmdb::LmdbEngine, redb::RedbEngine, rocksdb::RocksDbEngine};
    match spec["store"]["name"].as_str() {
        Some("rocksdb") => run::<RocksDbEngine, W>(options, workload),
        Some("lmdb") => run::<LmdbEngine, W>(options, workload),
        Some("fjall") => run::<FjallEngine, W>(options, workload),
        Some("redb") => run::<RedbEngine, W>(options, workload),
        other => Err(format!("no bare loop for {other:?}").into()),
    }
}

fn run<K: KeyValue, W: RecordWorkload>(options: &Options, workload: &W) -> Result<u64, Failure> {
    let engine = K::open(options)?;
    let timed = std::env::args().nth(1).is_some_and(|word| word == "timed");
    let operations = workload.operation_count().ok_or("no end")?;
    let next = AtomicU64::new(0);
    let start = Barrier::new(options.clients + 1);
    let before = std::thread::scope(|scope| {
        for _ in 0..options.clients {
            scope.spawn(|| {
                start.wait();
                if timed {
                    client::<_, _, true>(&engine, workload, &next, operations);
                } else {
                    client::<_, _, false>(&engine, workload, &next, operations);
                }
            });
        }
        start.wait();
        cpu_ns()
    });
    let ns = cpu_ns() - before;
    engine.close()?;
    Ok(ns)
}

/// CPU time that this process has used so far, in ns.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processor's timestamp counter.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux allows it in user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// Draws, encodes, merges and decodes the same data as the engine.
fn client<K: KeyValue, W: RecordWorkload, const TIMED: bool>(
    engine: &K,
    workload: &W,
    next: &AtomicU64,
    operations: u64,
) {
    let mut client = K::Client::default();
    let (mut operation, mut row, mut merged) = (Operation::default(), Row::default(), Vec::new());
    let stripe = if workload.any_order() { STRIPE } else { 1 };
    let mut current = 0..0;
    let latencies = Grid::default();
    loop {
        if current.is_empty() {
            let first = next.fetch_add(stripe, Ordering::Relaxed);
            current = first..(first + stripe).min(operations);
        }
        let Some(index) = current.next() else { return };
        workload.fill_operation(index, &mut operation);
        let projection = operation.selection.project_fields(workload.field_names());
        let key = &operation.key[..];
        let sent = if TIMED { ticks() } else { 0 };
        let done = match operation.kind {
            Kind::Read => engine
                .get(&mut client, key, |stored| {
                    row.clear_fields();
                    row.decode_fields(stored, projection).expect("a record");
                })
                .map(|_| ()),
            Kind::Update => engine
                .get(&mut client, key, |stored| operation.row.merge_into(stored, &mut merged).expect("a record"))
                .and_then(|_| engine.put(&mut client, key, &merged)),
            Kind::Insert => engine.put(&mut client, key, operation.row.bytes()),
            other => panic!("the bare loop does not {}", other.name()),
        };
        if TIMED {
            latencies.record_value(ticks() - sent);
        }
        done.expect("the store works");
    }
}
