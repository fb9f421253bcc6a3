//! What one worker records, and how the tapes of all workers are read together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::meter::{Grid, Reading, Table};
use loadstone_load::{Kind, Status};

use crate::sink::{Sink, Times, YcsbTape};

/// An operation this late against its due time, for no other reason than ourselves, is the generator's fault.
pub const LATE_NS: u64 = 1_000_000;

/// Why operations went out late, ns.
#[derive(Debug, Default)]
pub struct Waits {
    /// Wait while all clients were busy.
    pub client: Grid,
    /// Wait while a client was free: the generator woke late.
    pub generator: Grid,
}

/// What one worker (a thread or an executor) records. It alone writes; anyone may read.
#[derive(Debug, Default)]
pub struct Tape {
    /// done − sent, ns.
    pub service: Option<Table>,
    /// done − due, ns; with a rate only.
    pub response: Option<Table>,
    /// Waits; with a rate only.
    pub waits: Option<Waits>,
    /// What YCSB's formats need to be exact.
    pub ycsb: Vec<YcsbTape>,
    /// Operations sent, measured or not.
    sent: AtomicU64,
    /// Operations done, measured or not.
    done: AtomicU64,
    /// Measured operations done, whatever their outcome.
    measured: AtomicU64,
    /// Measured operations that ended well.
    succeeded: AtomicU64,
    /// Measured reads of records whose insert or delete was under way.
    not_yet: AtomicU64,
    /// When the last measured operation was done, ns.
    last_done: AtomicU64,
    late_generator: AtomicU64,
    late_client: AtomicU64,
}

#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

impl Tape {
    /// A tape with these sinks. `open`: a rate is set.
    pub fn new(sinks: &[Sink], open: bool, to_unix_ns: u64) -> Self {
        let ns = sinks.contains(&Sink::HdrNs);
        Self {
            service: ns.then(Table::default),
            response: (ns && open).then(Table::default),
            waits: open.then(Waits::default),
            ycsb: sinks.iter().filter_map(|sink| YcsbTape::new(sink, open, to_unix_ns)).collect(),
            ..Self::default()
        }
    }

    /// An operation goes out.
    #[inline]
    pub fn sends(&self) {
        add(&self.sent, 1);
    }

    /// Records one step: an operation, or a half of a read-modify-write, or a check.
    #[inline]
    pub fn step(&self, kind: Kind, status: Status, times: Times) {
        if let Some(table) = &self.service {
            table.record(kind, status, times.done.saturating_sub(times.sent));
        }
        if let Some(table) = &self.response {
            table.record(kind, status, times.done.saturating_sub(times.due));
        }
        for tape in &self.ycsb {
            tape.record(kind, status, times);
        }
    }

    /// Counts a whole operation, once, after its steps.
    #[inline]
    pub fn finishes(&self, measured: bool, ok: bool, not_yet: bool, done_ns: u64) {
        add(&self.done, 1);
        if measured {
            add(&self.measured, 1);
            add(&self.succeeded, u64::from(ok));
            add(&self.not_yet, u64::from(not_yet));
            // An insert that is given up was last tried long before, and others share this tape.
            let last = self.last_done.load(Ordering::Relaxed);
            self.last_done.store(last.max(done_ns), Ordering::Relaxed);
        }
    }

    /// Splits the wait before a measured send: until `free` all clients were busy, after it one was free.
    #[inline]
    pub fn waits(&self, due: u64, free: u64, sent: u64) {
        let client = free.saturating_sub(due);
        let generator = sent.saturating_sub(due.max(free));
        if let Some(waits) = &self.waits {
            waits.client.record(client);
            waits.generator.record(generator);
        }
        if client > LATE_NS {
            add(&self.late_client, 1);
        }
        if generator > LATE_NS {
            add(&self.late_generator, 1);
        }
    }
}

/// Totals over all tapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations done, measured or not.
    pub done: u64,
    /// Operations sent and not yet done.
    pub in_flight: u64,
    /// Measured operations done.
    pub measured: u64,
    /// Measured operations that ended well.
    pub succeeded: u64,
    /// Measured reads of records whose insert or delete was under way: neither.
    pub not_yet: u64,
    /// When the last measured one was done, ns.
    pub last_done_ns: u64,
    /// Measured operations sent over 1 ms late though a client was free.
    pub late_generator: u64,
    /// Measured operations over 1 ms late because all clients were busy.
    pub late_client: u64,
}

impl Totals {
    /// Measured operations that failed.
    pub fn failed(&self) -> u64 {
        self.measured.saturating_sub(self.succeeded + self.not_yet)
    }
}

/// The totals of tapes.
pub fn totals(tapes: &[Arc<Tape>]) -> Totals {
    let mut all = Totals::default();
    for tape in tapes {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        // Done is read before sent, so that an operation that ends in between is not counted as minus one.
        let done = get(&tape.done);
        all.in_flight += get(&tape.sent).saturating_sub(done);
        all.done += done;
        all.measured += get(&tape.measured);
        all.succeeded += get(&tape.succeeded);
        all.not_yet += get(&tape.not_yet);
        all.last_done_ns = all.last_done_ns.max(get(&tape.last_done));
        all.late_generator += get(&tape.late_generator);
        all.late_client += get(&tape.late_client);
    }
    all
}

/// Measured operations that were sent at a rate, whether or not they are done: each has its waits.
pub fn sent_at_a_rate(tapes: &[Arc<Tape>]) -> u64 {
    tapes.iter().filter_map(|tape| tape.waits.as_ref()).map(|waits| waits.client.count()).sum()
}

/// Readings by kind and status.
pub type Readings = BTreeMap<(Kind, Status), Reading>;

/// Adds up one table of all tapes, exactly.
pub fn merge<'a>(tables: impl Iterator<Item = &'a Table>) -> Readings {
    let mut all = Readings::new();
    for table in tables {
        for (kind, status, grid) in table.used() {
            all.entry((kind, status)).or_default().add(grid);
        }
    }
    all
}

/// What came since an earlier reading; kinds and statuses without anything new are left out.
pub fn since(now: &Readings, earlier: &Readings) -> Readings {
    now.iter()
        .map(|(key, reading)| match earlier.get(key) {
            Some(old) => (*key, reading.since(old)),
            None => (*key, reading.clone()),
        })
        .filter(|(_, reading)| reading.count() > 0)
        .collect()
}
