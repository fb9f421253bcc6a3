//! Tests that threads and executors perform the same operations, and that failures of their clients end the trial.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use loadstone_load::core::{CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::value_length::Length;
use loadstone_load::{Projection, Row, Segment, Status};
use loadstone_session::{
    About, Collections, Connection, Durability, Guarantee, Options, RecordStore, Rows, Session, Store,
};

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::records::target::RecordTarget;
use crate::records::{Records, RecordsOf};
use loadstone_measure::control::{End, TrialFailure};
use loadstone_measure::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use loadstone_measure::trial;
use loadstone_session::{Drive, EngineError};
use loadstone_wire::spec::TrialSpec;
use loadstone_wire::spec::{StoreSpec, Until, WorkSpec};

const OPERATIONS: u64 = 5_000;

/// Sums of the hashes of all operations, by the name of the trial.
static SUMS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// A store that adds the hash of every operation to the sum.
#[derive(Debug)]
struct Hashing<const BY_THREAD: bool>(String);

struct HashingSession(String);

impl<const BY_THREAD: bool> Store for Hashing<BY_THREAD> {
    type Session = HashingSession;
    const ABOUT: About = About { name: "hashing", line: "", networked: !BY_THREAD, properties: &[] };
    const DRIVE: Drive = if BY_THREAD { Drive::Thread } else { Drive::Task };

    fn open(options: &Options) -> Result<Self, EngineError> {
        Ok(Self(options.table.clone()))
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(Durability::None, "hashes")
    }
    fn session(&self) -> Result<HashingSession, EngineError> {
        Ok(HashingSession(self.0.clone()))
    }
}

impl HashingSession {
    fn add_operation(&self, operation: impl Hash) -> Status {
        let mut hasher = DefaultHasher::new();
        operation.hash(&mut hasher);
        let mut sums = SUMS.lock().unwrap();
        let sum = sums.entry(self.0.clone()).or_default();
        *sum = sum.wrapping_add(hasher.finish());
        Status::Ok
    }
}

impl Connection for HashingSession {}

impl Session for HashingSession {
    async fn read(&mut self, key: &[u8], _: Projection<'_>, _: &mut Row) -> Status {
        self.add_operation(("read", key))
    }
    async fn scan(&mut self, key: &[u8], count: usize, _: Projection<'_>, _: &mut Rows) -> Status {
        self.add_operation(("scan", key, count))
    }
    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        self.add_operation(("insert", key, row.bytes()))
    }
    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        self.add_operation(("update", key, row.bytes()))
    }
    async fn delete(&mut self, key: &[u8]) -> Status {
        self.add_operation(("delete", key))
    }
}

struct CheckCount;

impl Observer for CheckCount {
    fn report_ready(&mut self, _: &OpenedTrial<'_>) {}
    fn report_interval(&mut self, _: &Moment<'_>, _: &Interval<'_>) {}
    fn report_end(&mut self, closed: &Closed<'_>) {
        assert_eq!(closed.moment.totals.operations, closed.moment.operations.unwrap());
    }
}

fn trial_spec(name: &str, clients: u64, segment: Segment) -> TrialSpec {
    let core = CoreSpec {
        table: name.to_owned(),
        records: 1_000,
        insert_start: 0,
        insert_count: 1_000,
        field_count: 3,
        field_name_prefix: "field".to_owned(),
        field_length: Length::Uniform { min: 1, max: 30 },
        read_all_fields: true,
        write_all_fields: false,
        integrity: false,
        versions: false,
        mix: Mix { read: 0.3, update: 0.3, insert: 0.2, scan: 0.1, read_modify_write: 0.05, delete: 0.05 },
        keys: KeyDistribution::Zipfian,
        insert_order: InsertOrder::Hashed,
        zero_padding: 1,
        scan_length: Length::Uniform { min: 1, max: 100 },
        operations: Some(OPERATIONS),
        insert_lag: 14,
    };
    let store = StoreSpec { name: String::new(), properties: BTreeMap::new(), durability: Durability::default() };
    TrialSpec {
        clients,
        until: Until { operations: Some(OPERATIONS), seconds: None },
        segment,
        ..TrialSpec::new(store, WorkSpec::Records(core), 99)
    }
}

/// A target for the store: with a loop compiled for its session type, or with virtual calls.
fn create_target<S: RecordStore>() -> RecordTarget {
    if S::ABOUT.networked { RecordTarget::new_remote::<S>() } else { RecordTarget::new_embedded::<S>() }
}

/// The hash of all operations of a trial with `clients` clients in `n` segments.
fn hash_of<S: RecordStore>(name: &str, clients: u64, n: u64) -> u64 {
    for k in 0..n {
        let spec = trial_spec(name, clients, Segment { k, n });
        let WorkSpec::Records(core) = spec.work.clone() else { unreachable!() };
        let (_keep, controls) = channel();
        let work = Records::new(RecordsOf::new(&core, spec.phase, spec.seed, None).unwrap());
        assert_eq!(
            trial::run_trial(&spec, work, &create_target::<S>(), &controls, &mut CheckCount).unwrap(),
            End::Done
        );
    }
    SUMS.lock().unwrap()[name]
}

#[test]
fn operations_depend_only_on_seed_and_index() {
    let alone = hash_of::<Hashing<true>>("one thread", 1, 1);
    assert_eq!(hash_of::<Hashing<true>>("two threads", 2, 1), alone);
    assert_eq!(hash_of::<Hashing<true>>("seven threads", 7, 1), alone);
    assert_eq!(hash_of::<Hashing<false>>("a hundred clients on executors", 100, 1), alone);
    assert_eq!(hash_of::<Hashing<true>>("three segments", 7, 3), alone);
    assert_eq!(hash_of::<Hashing<false>>("seven segments on executors", 14, 7), alone);
}

/// A store whose first scan panics or never returns.
#[derive(Debug)]
struct Broken<const BY_THREAD: bool, const HANGS: bool>;

struct BrokenSession {
    scan: fn(),
}

fn breaks() {
    panic!("broken for the test");
}

fn hangs() {
    loop {
        std::thread::park();
    }
}

impl<const BY_THREAD: bool, const HANGS: bool> Store for Broken<BY_THREAD, HANGS> {
    type Session = BrokenSession;
    const ABOUT: About = About { name: "broken", line: "", networked: !BY_THREAD, properties: &[] };
    const DRIVE: Drive = if BY_THREAD { Drive::Thread } else { Drive::Task };

    fn open(_: &Options) -> Result<Self, EngineError> {
        Ok(Self)
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(Durability::None, "breaks")
    }
    fn session(&self) -> Result<BrokenSession, EngineError> {
        Ok(BrokenSession { scan: if HANGS { hangs } else { breaks } })
    }
}

impl Connection for BrokenSession {}

impl Session for BrokenSession {
    async fn read(&mut self, _: &[u8], _: Projection<'_>, _: &mut Row) -> Status {
        Status::Ok
    }
    async fn scan(&mut self, _: &[u8], _: usize, _: Projection<'_>, _: &mut Rows) -> Status {
        (self.scan)();
        Status::Ok
    }
    async fn insert(&mut self, _: &[u8], _: &Row) -> Status {
        Status::Ok
    }
    async fn update(&mut self, _: &[u8], _: &Row) -> Status {
        Status::Ok
    }
    async fn delete(&mut self, _: &[u8]) -> Status {
        Status::Ok
    }
}

/// Stores the length of the measured window, ns, and the number of operations without an answer.
#[derive(Default)]
struct Measured(u64, u64);

impl Observer for Measured {
    fn report_ready(&mut self, _: &OpenedTrial<'_>) {}
    fn report_interval(&mut self, _: &Moment<'_>, _: &Interval<'_>) {}
    fn report_end(&mut self, closed: &Closed<'_>) {
        *self = Self(closed.window.length_ns, closed.censored.unanswered);
    }
}

fn end_of<S: RecordStore>(until: Until) -> (End, Measured) {
    let mut spec = TrialSpec { until, ..trial_spec("broken", 3, Segment::default()) };
    let WorkSpec::Records(core) = &mut spec.work else { unreachable!() };
    core.operations = until.operations;
    let work = Records::new(RecordsOf::new(core, spec.phase, spec.seed, None).unwrap());
    let ((_keep, controls), mut measured) = (channel(), Measured::default());
    (trial::run_trial(&spec, work, &create_target::<S>(), &controls, &mut measured).unwrap(), measured)
}

#[test]
fn panicking_client_fails_the_trial() {
    let until = Until { operations: Some(OPERATIONS), seconds: None };
    for (end, _) in [end_of::<Broken<true, false>>(until), end_of::<Broken<false, false>>(until)] {
        let End::Failed(TrialFailure::ClientPanicked(message)) = end else { panic!("{end:?}") };
        assert!(message.ends_with("broken for the test"), "{message}");
    }
}

/// All clients hang within milliseconds, but the throughput is still divided by the whole second.
#[test]
fn a_store_that_hangs_does_not_look_faster() {
    let (end, Measured(measured_ns, in_flight)) =
        end_of::<Broken<true, true>>(Until { operations: None, seconds: Some(1.0) });
    assert_eq!((end, in_flight), (End::Done, 3));
    assert_eq!(measured_ns, 1_000_000_000);
}

/// Two flags: whether the store's JVM has exited (as after `System.exit`) during a query of its collections, and
/// whether it has exited during a scan.
static ENDED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// A store in a JVM that exits. A thread that is in the JVM then never returns.
#[derive(Debug)]
struct Ending<const IN_SCAN: bool>;

impl<const IN_SCAN: bool> Store for Ending<IN_SCAN> {
    type Session = BrokenSession;
    const ABOUT: About = About { name: "ending", line: "", networked: true, properties: &[] };
    const DRIVE: Drive = Drive::Thread;

    fn open(_: &Options) -> Result<Self, EngineError> {
        Ok(Self)
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::new(Durability::None, "ends")
    }
    fn session(&self) -> Result<BrokenSession, EngineError> {
        let scan = || {
            // The sleep is longer than the trial, so the JVM exits while the trial is waiting for its clients.
            std::thread::sleep(Duration::from_millis(500));
            ENDED[1].store(true, Ordering::SeqCst);
            hangs();
        };
        Ok(BrokenSession { scan: if IN_SCAN { scan } else { hangs } })
    }
    fn collections(&self) -> Vec<Collections> {
        if !IN_SCAN {
            ENDED[0].store(true, Ordering::SeqCst);
            hangs();
        }
        Vec::new()
    }
    fn describe_loss(&self) -> Option<String> {
        ENDED[usize::from(IN_SCAN)].load(Ordering::SeqCst).then(|| "System.exit(7)".to_owned())
    }
}

/// After its JVM has exited, a process exits within 30 s (crates/stores/src/jvm/exit.rs), with or without a report.
#[test]
fn exiting_jvm_leaves_earlier_results() {
    let until = |seconds| Until { operations: None, seconds: Some(seconds) };
    let (in_query, ends) = channel();
    let in_scan = in_query.clone();
    std::thread::spawn(move || in_query.send(end_of::<Ending<false>>(until(60.0))));
    std::thread::spawn(move || in_scan.send(end_of::<Ending<true>>(until(0.1))));
    for _ in 0..2 {
        let (end, Measured(measured_ns, _)) = ends.recv_timeout(Duration::from_secs(20)).expect("a report");
        assert_eq!(end, End::Failed(TrialFailure::StoreLost("System.exit(7)".to_owned())));
        assert!(measured_ns > 0);
    }
}
