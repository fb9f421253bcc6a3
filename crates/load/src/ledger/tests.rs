use super::*;
use proptest::prelude::*;

mod histories;

const RUN: Run = Run { seed: 7, number: Some(3), spec: 9 };
const LAYOUT: Layout = Layout { writes: 10_000, clients: 4, workers: 3, ticks: 20, exceptions: 2 };

fn memory(layout: Layout) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(layout.word_count().unwrap()).collect()
}

fn ledger() -> Ledger<Vec<AtomicU64>> {
    Ledger::create(memory(LAYOUT), LAYOUT, RUN, Segment { k: 1, n: 4 }).unwrap()
}

#[test]
fn billion_writes_take_250_megabytes() {
    let layout = Layout { writes: 1_000_000_000, clients: 64, workers: 64, ticks: 360_000, exceptions: 1 << 20 };
    assert!(layout.bit_words() * 8 <= 256_000_000);
    assert_eq!(layout.word_count().unwrap() as u64, 32 + layout.bit_words() + 64 * 256 + 720_000 + (4 << 20));
    assert_eq!(Layout { exceptions: u64::MAX, ..layout }.word_count(), None);
}

#[test]
fn anything_but_a_ledger_is_refused() {
    assert!(Ledger::open(Vec::new()).unwrap_err().contains("not a ledger"));
    let cells = ledger().memory;
    let cut: Vec<_> =
        cells[..cells.len() - 1].iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect();
    assert!(Ledger::open(cut).unwrap_err().contains("truncated"));
    assert!(Ledger::create(cells, LAYOUT, RUN, Segment::default()).unwrap_err().contains("not empty"));
    let small = memory(Layout { workers: 2, ..LAYOUT });
    assert!(Ledger::create(small, LAYOUT, RUN, Segment::default()).unwrap_err().contains("words"));
}

#[test]
fn ledger_survives_its_engine() {
    let ledger = ledger();
    ledger.start(100, 1_000);
    ledger.tick(50, 120);
    let exception = Exception { index: 9, sent: 1, done: 5, status: Some(Status::Timeout), retried: true };
    for index in 9..12 {
        ledger.except(Exception { index, ..exception });
    }
    // Notes one and a half rings; the last half is only in the ring.
    for number in 0..360 {
        ledger.pen(2).note(number, State::Acknowledged);
    }
    assert_eq!((ledger.state(239), ledger.state(359)), (State::Acknowledged, State::Unknown));
    let after = Ledger::open(ledger.memory).unwrap();
    assert!((0..360).all(|number| after.state(number) == State::Acknowledged));
    assert_eq!((after.state(360), after.end()), (State::Unknown, 384));
    assert_eq!((after.layout(), after.run(), after.segment()), (LAYOUT, RUN, Segment { k: 1, n: 4 }));
    assert_eq!(after.times(), (1_100, vec![(50, 1_120)]));
    assert_eq!(after.exceptions().collect::<Vec<_>>(), [exception, Exception { index: 10, ..exception }]);
    assert_eq!((after.exceptions_lost(), after.count_claimed()), (1, None));
}

#[test]
fn numbers_beyond_the_ledger_are_unknown() {
    let ledger = ledger();
    for number in LAYOUT.writes - 2..LAYOUT.writes + 300 {
        ledger.pen(0).note(number, State::Refused);
    }
    assert_eq!(ledger.beyond(), 300);
    ledger.settle();
    assert_eq!(ledger.state(LAYOUT.writes - 1), State::Refused);
    assert_eq!(ledger.state(LAYOUT.writes), State::Unknown);
}

#[test]
fn old_ledgers_are_refused_by_version() {
    let ledger = ledger();
    ledger.set(at::VERSION, 1);
    assert!(Ledger::open(ledger.memory).unwrap_err().contains("version 1"));
}

#[test]
fn slow_bound_rises_as_exceptions_fill() {
    let layout = Layout { exceptions: 8, ..LAYOUT };
    let ledger = Ledger::create(memory(layout), layout, RUN, Segment::default()).unwrap();
    let bounds: Vec<u64> = (0..6)
        .map(|index| {
            ledger.except(Exception { index, sent: 1, done: 5, status: None, retried: false });
            ledger.slow_ns() / 1_000_000
        })
        .collect();
    assert_eq!(bounds, [1, 1, 10, 10, 100, 100]);
}

#[test]
fn ledgers_of_different_runs_are_refused_together() {
    for run in
        [Run { seed: 8, ..RUN }, Run { number: Some(4), ..RUN }, Run { number: None, ..RUN }, Run { spec: 8, ..RUN }]
    {
        let ledgers = [RUN, run]
            .into_iter()
            .zip(0..)
            .map(|(run, k)| Ledger::create(memory(LAYOUT), LAYOUT, run, Segment { k, n: 2 }).unwrap());
        let ledgers: Vec<_> = ledgers.collect();
        assert!(Evidence::new(&ledgers, None, 0).err().unwrap().contains("different runs"), "{run:?}");
    }
}

#[test]
#[should_panic(expected = "worker 3 of 3")]
fn no_two_workers_share_a_ring() {
    ledger().pen(3);
}

proptest! {
    /// Threads note writes in any order, and every bit is set in the right place.
    #[test]
    fn threads_lose_no_mark_of_each_other(states in proptest::collection::vec(1u64..4, 0..4_000), threads in 1usize..4) {
        let ledger = ledger();
        std::thread::scope(|scope| {
            for worker in 0..threads {
                let (ledger, states) = (&ledger, &states);
                scope.spawn(move || {
                    let pen = ledger.pen(worker);
                    for (number, &state) in states.iter().enumerate().skip(worker).step_by(threads) {
                        pen.note(number as u64, State::from_bits(state));
                    }
                });
            }
        });
        ledger.close(5, 5);
        prop_assert_eq!(ledger.count_claimed(), Some(5));
        for (number, &state) in states.iter().enumerate() {
            prop_assert_eq!(ledger.state(number as u64), State::from_bits(state));
        }
        prop_assert_eq!(ledger.state(states.len() as u64), State::Unknown);
    }
}

#[test]
fn retried_write_has_its_best_outcome() {
    use State::{Acknowledged, Maybe, Refused, Retried};
    assert_eq!((Maybe.then(Acknowledged), Refused.then(Acknowledged)), (Retried, Acknowledged));
    assert_eq!(Refused.then(Maybe).then(Refused).then(Acknowledged), Retried);
    assert_eq!(Refused.then(Refused), Refused);
    assert_eq!((Maybe.then(Refused), Refused.then(Maybe)), (Maybe, Maybe));
}
