use super::*;
use proptest::prelude::*;

mod histories;

const RUN: LedgerRun = LedgerRun { seed: 7, number: Some(3), spec: 9 };
const LAYOUT: LedgerLayout = LedgerLayout { writes: 10_000, clients: 4, workers: 3, ticks: 20, exceptions: 2 };

fn allocate_memory(layout: LedgerLayout) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(layout.word_count().unwrap()).collect()
}

fn create_ledger() -> Ledger<Vec<AtomicU64>> {
    Ledger::create_in(allocate_memory(LAYOUT), LAYOUT, RUN, Segment { k: 1, n: 4 }).unwrap()
}

#[test]
fn billion_writes_take_250_megabytes() {
    let layout = LedgerLayout { writes: 1_000_000_000, clients: 64, workers: 64, ticks: 360_000, exceptions: 1 << 20 };
    assert!(layout.bit_words() * 8 <= 256_000_000);
    assert_eq!(layout.word_count().unwrap() as u64, 32 + layout.bit_words() + 64 * 256 + 720_000 + (4 << 20));
    assert_eq!(LedgerLayout { exceptions: u64::MAX, ..layout }.word_count(), None);
}

#[test]
fn anything_but_a_ledger_is_refused() {
    assert!(Ledger::open_in(Vec::new()).unwrap_err().contains("not a ledger"));
    let cells = create_ledger().memory;
    let cut: Vec<_> =
        cells[..cells.len() - 1].iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect();
    assert!(Ledger::open_in(cut).unwrap_err().contains("truncated"));
    assert!(Ledger::create_in(cells, LAYOUT, RUN, Segment::default()).unwrap_err().contains("not empty"));
    let small = allocate_memory(LedgerLayout { workers: 2, ..LAYOUT });
    assert!(Ledger::create_in(small, LAYOUT, RUN, Segment::default()).unwrap_err().contains("words"));
}

#[test]
fn ledger_survives_its_engine() {
    let ledger = create_ledger();
    ledger.note_start(100, 1_000);
    ledger.note_tick(50, 120);
    let exception = Exception { index: 9, sent: 1, done: 5, status: Some(Status::Timeout), retried: true };
    for index in 9..12 {
        ledger.add_exception(Exception { index, ..exception });
    }
    // Notes one and a half rings; the last half is only in the ring.
    for number in 0..360 {
        ledger.create_pen(2).note_state(number, WriteState::Acknowledged);
    }
    assert_eq!((ledger.state(239), ledger.state(359)), (WriteState::Acknowledged, WriteState::Unknown));
    let after = Ledger::open_in(ledger.memory).unwrap();
    assert!((0..360).all(|number| after.state(number) == WriteState::Acknowledged));
    assert_eq!((after.state(360), after.end()), (WriteState::Unknown, 384));
    assert_eq!((after.layout(), after.run(), after.segment()), (LAYOUT, RUN, Segment { k: 1, n: 4 }));
    assert_eq!(after.tick_times(), (1_100, vec![(50, 1_120)]));
    assert_eq!(after.exceptions().collect::<Vec<_>>(), [exception, Exception { index: 10, ..exception }]);
    assert_eq!((after.exceptions_lost(), after.count_claimed()), (1, None));
}

#[test]
fn numbers_beyond_the_ledger_are_unknown() {
    let ledger = create_ledger();
    for number in LAYOUT.writes - 2..LAYOUT.writes + 300 {
        ledger.create_pen(0).note_state(number, WriteState::Refused);
    }
    assert_eq!(ledger.count_beyond(), 300);
    ledger.settle_writes();
    assert_eq!(ledger.state(LAYOUT.writes - 1), WriteState::Refused);
    assert_eq!(ledger.state(LAYOUT.writes), WriteState::Unknown);
}

#[test]
fn old_ledgers_are_refused_by_version() {
    let ledger = create_ledger();
    ledger.store_cell(at::VERSION, 1);
    assert!(Ledger::open_in(ledger.memory).unwrap_err().contains("version 1"));
}

#[test]
fn slow_bound_rises_as_exceptions_fill() {
    let layout = LedgerLayout { exceptions: 8, ..LAYOUT };
    let ledger = Ledger::create_in(allocate_memory(layout), layout, RUN, Segment::default()).unwrap();
    let bounds: Vec<u64> = (0..6)
        .map(|index| {
            ledger.add_exception(Exception { index, sent: 1, done: 5, status: None, retried: false });
            ledger.slow_ns() / 1_000_000
        })
        .collect();
    assert_eq!(bounds, [1, 1, 10, 10, 100, 100]);
}

#[test]
fn ledgers_of_different_runs_are_refused_together() {
    for run in [
        LedgerRun { seed: 8, ..RUN },
        LedgerRun { number: Some(4), ..RUN },
        LedgerRun { number: None, ..RUN },
        LedgerRun { spec: 8, ..RUN },
    ] {
        let ledgers = [RUN, run]
            .into_iter()
            .zip(0..)
            .map(|(run, k)| Ledger::create_in(allocate_memory(LAYOUT), LAYOUT, run, Segment { k, n: 2 }).unwrap());
        let ledgers: Vec<_> = ledgers.collect();
        assert!(Evidence::new(&ledgers, None, 0).err().unwrap().contains("different runs"), "{run:?}");
    }
}

#[test]
#[should_panic(expected = "worker 3 of 3")]
fn no_two_workers_share_a_ring() {
    create_ledger().create_pen(3);
}

proptest! {
    /// Threads note writes in any order, and every bit is set in the right place.
    #[test]
    fn threads_lose_no_mark_of_each_other(states in proptest::collection::vec(1u64..4, 0..4_000), threads in 1usize..4) {
        let ledger = create_ledger();
        std::thread::scope(|scope| {
            for worker in 0..threads {
                let (ledger, states) = (&ledger, &states);
                scope.spawn(move || {
                    let pen = ledger.create_pen(worker);
                    for (number, &state) in states.iter().enumerate().skip(worker).step_by(threads) {
                        pen.note_state(number as u64, WriteState::from_bits(state));
                    }
                });
            }
        });
        ledger.note_close(5, 5);
        prop_assert_eq!(ledger.count_claimed(), Some(5));
        for (number, &state) in states.iter().enumerate() {
            prop_assert_eq!(ledger.state(number as u64), WriteState::from_bits(state));
        }
        prop_assert_eq!(ledger.state(states.len() as u64), WriteState::Unknown);
    }
}

#[test]
fn retried_write_has_its_best_outcome() {
    use WriteState::{Acknowledged, Maybe, Refused, Retried};
    assert_eq!((Maybe.combine_with(Acknowledged), Refused.combine_with(Acknowledged)), (Retried, Acknowledged));
    assert_eq!(Refused.combine_with(Maybe).combine_with(Refused).combine_with(Acknowledged), Retried);
    assert_eq!(Refused.combine_with(Refused), Refused);
    assert_eq!((Maybe.combine_with(Refused), Refused.combine_with(Maybe)), (Maybe, Maybe));
}
