//! Random scenarios: clients in several segments write to a simulated store, on a simulated clock and with faults.

use std::collections::BTreeMap;

use super::*;
use crate::core::{CoreRun, CoreSpec, Mix};
use crate::keys::{InsertOrder, KeyDistribution};
use crate::kind::Kind;
use crate::operation::{Operation, RecordWorkload, Workload};
use crate::random::{Draws, Purpose};
use crate::value_length::Length;
use crate::version::{FieldHash, LEN, Origin, Phase, Stamp, Version};

const MS: u64 = 1_000_000;
const SEED: u64 = 11;
/// Largest error of a segment's clock.
const SKEW: u64 = 250 * MS;
/// The judge must find the order of all writes that are farther apart than this, ns: the sum of the bound for slow
/// writes, the interval of ticks, the delay of late ticks, and the clocks' skew.
const APART: u64 = SLOW_NS[2] + 90 * MS + 2 * SKEW;
const NUMBER: Option<u64> = Some(5);

#[derive(Clone, Debug)]
struct History {
    seed: u64,
    records: u64,
    fields: usize,
    whole: bool,
    deletes: bool,
    clients: u64,
    segments: u64,
    operations: u64,
    /// Whether the server decides the order of writes; otherwise the clients' timestamps do.
    server_orders: bool,
    /// Share of acknowledged writes that are dropped, of refused writes that are applied, and of histories that are
    /// reverted.
    wrong: f64,
    /// The point at which the server is killed, as a share of the run, and the time before it whose writes are lost,
    /// ms.
    kill: Option<(f64, u64)>,
    /// The point at which the engine is killed, as a share of the run.
    death: Option<f64>,
}

fn history_strategy() -> impl Strategy<Value = History> {
    let shape = (any::<u64>(), 1u64..40, 1usize..4, any::<bool>(), any::<bool>());
    let load = (1u64..8, 1u64..5, 50u64..2_500, any::<bool>());
    let wrongs = (
        prop_oneof![Just(0.0), 0.001..0.1],
        proptest::option::of((0.1..1.0, 1u64..3_000)),
        proptest::option::of(0.1..1.0),
    );
    (shape, load, wrongs).prop_map(|(shape, load, wrongs)| {
        let (seed, records, fields, whole, deletes) = shape;
        let (clients, segments, operations, server_orders) = load;
        let (wrong, kill, death) = wrongs;
        History {
            seed,
            records,
            fields,
            whole,
            deletes,
            clients,
            segments,
            operations,
            server_orders,
            wrong,
            kill,
            death,
        }
    })
}

impl History {
    fn create_workload(&self) -> CoreRun {
        let delete = if self.deletes { 0.05 } else { 0.0 };
        let spec = CoreSpec {
            table: String::new(),
            records: self.records,
            insert_start: 0,
            insert_count: self.records,
            field_count: self.fields,
            field_name_prefix: "field".to_owned(),
            field_length: Length::Uniform { min: LEN, max: 40 },
            read_all_fields: true,
            write_all_fields: self.whole,
            integrity: false,
            versions: true,
            mix: Mix { read: 0.2, update: 0.5, insert: 0.1, scan: 0.0, read_modify_write: 0.1, delete },
            keys: KeyDistribution::Zipfian,
            insert_order: InsertOrder::Hashed,
            zero_padding: 1,
            scan_length: Length::Constant { bytes: 1 },
            operations: Some(self.operations),
            insert_lag: 4,
        };
        spec.check_versions().unwrap();
        CoreRun::new(spec, SEED).unwrap().with_number(NUMBER)
    }
}

/// What really happened to a write.
#[derive(Clone, Debug)]
struct Deed {
    sent: u64,
    done: u64,
    state: WriteState,
    touches: Write,
    /// Time at which the store applied the write, or the timestamp by which the store ordered it.
    effect: Option<u64>,
    /// Time at which the store applied an earlier attempt that the client had abandoned.
    again: Option<u64>,
    key: Vec<u8>,
    values: BTreeMap<usize, Vec<u8>>,
}

struct Played {
    ledgers: Vec<Ledger<Vec<AtomicU64>>>,
    deeds: BTreeMap<u64, Deed>,
    /// The value of each record and field.
    store: BTreeMap<(u64, usize), Vec<u8>>,
    keys: BTreeMap<u64, Vec<u8>>,
}

fn play_history(history: &History, workload: &CoreRun) -> Played {
    let mut draws = Draws::new(history.seed, 0, Purpose::Retry);
    let (clients, writes) = (history.clients, history.operations);
    let layout = LedgerLayout { writes, clients, workers: clients, ticks: 20_000, exceptions: 10_000 };
    let run = LedgerRun { seed: SEED, number: NUMBER, spec: 1 };
    let mut ledgers: Vec<_> = (0..history.segments)
        .map(|k| Ledger::create_in(allocate_memory(layout), layout, run, Segment { k, n: history.segments }).unwrap())
        .collect();
    let start = 1_000 * MS;
    for ledger in &ledgers {
        // Each segment has a separate clock with a different offset.
        ledger.note_start(start, draws.draw_below(SKEW));
    }
    let mut free: Vec<(u64, u64, u64)> =
        (0..history.segments).flat_map(|k| (0..history.clients).map(move |c| (start, k, c))).collect();
    let mut steps = vec![0; history.segments as usize];
    let mut next_tick = vec![start + 10 * MS; history.segments as usize];
    // Approximate duration, assuming 4 ms per operation and pauses of 10 ms.
    let length = history.operations * 24 * MS / (history.clients * history.segments);
    let (death, killed) = (history.death.map(|share| start + (length as f64 * share) as u64), history.kill);
    let killed = killed.map_or(0, |(share, _)| start + (length as f64 * share) as u64);
    let (mut deeds, mut operation) = (BTreeMap::new(), Operation::default());
    let mut end = start;
    // The client that became idle first continues, so that claims are in chronological order.
    while let Some(&(now, k, client)) = free.iter().min() {
        let place = free.iter().position(|&slot| slot == (now, k, client)).unwrap();
        let segment = Segment { k, n: history.segments };
        let (ledger, step) = (&ledgers[k as usize], &mut steps[k as usize]);
        if *step >= segment.share_of_total(history.operations) || death.is_some_and(|death| now > death) {
            free.swap_remove(place);
            continue;
        }
        while next_tick[k as usize] < now {
            // The clock is read some time after the counter was read.
            ledger.note_tick(*step, next_tick[k as usize] + draws.draw_below(9 * MS));
            next_tick[k as usize] += 10 * MS + draws.draw_below(10) * MS;
        }
        let index = segment.global_index(*step);
        *step += 1;
        let took =
            if draws.next_f64() < 0.03 { 90 * MS + draws.draw_below(300 * MS) } else { 1 + draws.draw_below(8 * MS) };
        let done = now + took;
        end = end.max(done);
        free[place].0 = done + draws.draw_below(40 * MS);
        workload.fill_operation(index, &mut operation);
        let Some(touches) = workload.find_write(index) else { continue };
        let (state, within) = match draws.next_f64() {
            p if p < 0.88 => (WriteState::Acknowledged, Some(took)),
            p if p < 0.9 => (WriteState::Retried, Some(took)),
            p if p < 0.94 => (WriteState::Refused, None),
            p if p < 0.96 => (WriteState::Maybe, None),
            _ => (WriteState::Maybe, Some(2_000 * MS)),
        };
        let wrong = draws.next_f64() < history.wrong;
        let mut effect = within.map(|ns| now + draws.draw_below(ns + 1));
        if state != WriteState::Maybe && wrong {
            effect = if state == WriteState::Refused { Some(now) } else { None };
        }
        if let Some((_, forgets)) = history.kill {
            effect = effect.filter(|&at| at > killed || at + forgets * MS < killed);
        }
        if !history.server_orders {
            effect = effect.map(|_| now + draws.draw_below(took));
        }
        let again = (state == WriteState::Retried && history.server_orders).then(|| now + draws.draw_below(2_000 * MS));
        // Writes that were in flight when the engine was killed are not noted.
        let noted = death.is_none_or(|death| done <= death);
        if noted {
            ledger.create_pen(client as usize).note_state(workload.find_number(index).unwrap(), state);
            if state != WriteState::Acknowledged || took > ledger.slow_ns() {
                let retried = state == WriteState::Retried;
                ledger.add_exception(Exception { index, sent: now, done, status: None, retried });
            }
        }
        let state = if noted { state } else { WriteState::Unknown };
        // A delete leaves the buffer unchanged.
        let written = operation.row.fields().flatten().filter(|_| !touches.delete);
        let values = written.map(|(name, value)| {
            (workload.field_names().iter().position(|own| own.as_bytes() == name).unwrap(), value.to_vec())
        });
        let (key, values) = (operation.key.clone(), values.collect());
        deeds.insert(index, Deed { sent: now, done, state, touches, effect, again, key, values });
    }
    for ((ledger, step), next) in ledgers.iter().zip(&steps).zip(next_tick) {
        let last = death.unwrap_or(end).min(end);
        (next..last).step_by(10 * MS as usize).for_each(|ns| ledger.note_tick(*step, ns));
    }
    if death.is_some() {
        ledgers = ledgers.into_iter().map(|ledger| Ledger::open_in(ledger.memory).unwrap()).collect();
    } else {
        for (ledger, step) in ledgers.iter().zip(steps) {
            ledger.note_close(step, end);
        }
    }
    let (store, keys) = store_records(history, workload, &deeds, &mut draws);
    Played { ledgers, deeds, store, keys }
}

type Stored = (BTreeMap<(u64, usize), Vec<u8>>, BTreeMap<u64, Vec<u8>>);

fn store_records(history: &History, workload: &CoreRun, deeds: &BTreeMap<u64, Deed>, draws: &mut Draws) -> Stored {
    let (mut store, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for record in 0..history.records + history.operations {
        let mut key = Vec::new();
        crate::keys::write_key(&mut key, record, InsertOrder::Hashed, 1);
        for field in 0..history.fields {
            let mut value = vec![b'.'; 30];
            let name = workload.field_names()[field].as_bytes();
            Stamp::new(SEED, &key)
                .mark_version(Version::from_load(record))
                .write_mark(&mut value, FieldHash::new(name));
            if record < history.records {
                store.insert((record, field), value);
            }
        }
        keys.insert(record, key);
    }
    let effects = deeds.values().flat_map(|deed| [deed.effect, deed.again].map(|at| (at, deed)));
    let mut done: Vec<(u64, &Deed)> = effects.filter_map(|(at, deed)| Some((at?, deed))).collect();
    done.sort_by_key(|&(at, _)| at);
    for (_, deed) in &done {
        assert_eq!(keys[&deed.touches.record], deed.key, "a write touches the record that it names");
        if deed.touches.delete {
            (0..history.fields).for_each(|field| drop(store.remove(&(deed.touches.record, field))));
        }
        for (&field, value) in &deed.values {
            assert!(deed.touches.field.is_none_or(|own| own == field));
            store.insert((deed.touches.record, field), value.clone());
        }
    }
    // Simulates an answer from an outdated replica.
    for (_, deed) in done {
        if draws.next_f64() < history.wrong {
            for (&field, value) in &deed.values {
                store.insert((deed.touches.record, field), value.clone());
            }
        }
    }
    (store, keys)
}

/// Judges every history, and compares the result with what really happened. Returns the number of losses found.
fn check_history(history: &History) -> Result<usize, TestCaseError> {
    let workload = history.create_workload();
    let outcome = play_history(history, &workload);
    let Played { ledgers, deeds, store, keys } = &outcome;
    let evidence = Evidence::new(ledgers, None, SKEW).unwrap();
    let records = 0..history.records + history.operations;
    let judge = Judge::new(&workload, &evidence, history.server_orders, records.clone());
    let mut standings = judge.standings();
    let mut losses = 0;
    // The write whose value each history returns, and the latest time at which it can have finished.
    let mut overs = BTreeMap::new();
    for (&index, deed) in deeds {
        let number = workload.find_number(index).unwrap();
        prop_assert_eq!(evidence.state(index, number), Some(deed.state), "{} was sent", index);
        let span = evidence.span(index);
        prop_assert!(span.sent <= deed.sent + SKEW, "{:?} {:?}", span, deed);
        prop_assert!(span.done >= deed.done || deed.state == WriteState::Unknown, "{:?} {:?}", span, deed);
    }
    let sent = deeds.keys().next_back().map_or(0, |&last| workload.find_number(last).unwrap());
    let room = if history.death.is_some() { 96 + 2 * history.clients * history.segments } else { 0 };
    for (record, field) in records.flat_map(|record| (0..history.fields).map(move |field| (record, field))) {
        let name = workload.field_names()[field].as_bytes();
        let value = match store.get(&(record, field)) {
            None => FieldValue::Absent,
            Some(value) => match workload.find_origin(&keys[&record], name, value) {
                Some(Origin::Own(version)) => FieldValue::Of(version),
                other => panic!("{other:?}"),
            },
        };
        let (finding, deleted) =
            (judge.judge_value(&mut standings, record, field, value), workload.deletion_of(record));
        let acknowledged = || {
            let touching = deeds
                .iter()
                .filter(|(_, deed)| deed.touches.record == record && deed.touches.field.is_none_or(|own| own == field));
            touching.filter(|(_, deed)| matches!(deed.state, WriteState::Acknowledged | WriteState::Retried))
        };
        let standing = match value {
            FieldValue::Of(Version { phase: Phase::Run, index }) => deeds.get(&index),
            FieldValue::Absent => deleted.and_then(|index| deeds.get(&index)),
            _ => None,
        };
        // The ledger may count a delete as sent although the killed engine had not sent it, if the delete was among the
        // next operations.
        let next = deleted.map(|index| (index, workload.find_number(index).unwrap()));
        let unsure = standing.is_none() && next.is_some_and(|(index, number)| evidence.state(index, number).is_some());
        prop_assert!(!unsure || value != FieldValue::Absent || next.unwrap().1 <= sent + room);
        let unsure = unsure && value == FieldValue::Absent;
        // The latest time at which the standing write can have finished.
        let over = match standing {
            None if unsure => u64::MAX,
            None => 0,
            Some(deed) => match deed.state {
                WriteState::Refused if value == FieldValue::Absent => 0,
                WriteState::Refused => {
                    prop_assert!(matches!(finding, Finding::Phantom(_)), "{record}/{field}: {finding:?}");
                    continue;
                }
                WriteState::Maybe | WriteState::Retried | WriteState::Unknown
                    if history.server_orders || deed.state == WriteState::Unknown =>
                {
                    u64::MAX
                }
                _ => deed.done,
            },
        };
        overs.insert((record, field), (over, standing));
        let gone = history.records > record && value == FieldValue::Absent && over == 0;
        let lost = acknowledged().any(|(_, deed)| over < deed.sent) || gone;
        let plain = acknowledged().any(|(_, deed)| over.saturating_add(APART) < deed.sent) || gone;
        match finding {
            Finding::Lost(_) => {
                prop_assert!(lost, "nothing is lost in {record}/{field}: {value:?}");
                losses += 1;
            }
            Finding::Fine | Finding::Overlapped | Finding::CameTrue => {
                prop_assert!(!plain, "a loss in {record}/{field} is not found: {value:?}, {finding:?}");
            }
            other => prop_assert!(false, "{record}/{field}: {value:?} is {other:?}"),
        }
    }
    let mut outcomes = Vec::new();
    judge.judge_writes(&standings, Some(&standings), |outcome| outcomes.push(outcome));
    let acknowledged =
        deeds.values().filter(|deed| matches!(deed.state, WriteState::Acknowledged | WriteState::Retried)).count();
    prop_assert_eq!(outcomes.len(), acknowledged);
    for WriteOutcome { index, span, fate, missed } in outcomes {
        let deed = &deeds[&index];
        prop_assert!(span.sent <= deed.sent + SKEW && span.done >= deed.done);
        prop_assert_eq!(missed, fate == Fate::Lost);
        let fields = (0..history.fields).filter(|&field| deed.touches.field.is_none_or(|own| own == field));
        // Considers only histories that do not return a phantom value.
        let standings: Vec<_> = fields.filter_map(|field| overs.get(&(deed.touches.record, field))).collect();
        let lost = |apart: u64| standings.iter().any(|(over, _)| over.saturating_add(apart) < deed.sent);
        match fate {
            Fate::Lost => prop_assert!(lost(0), "{index} is not lost"),
            _ => prop_assert!(!lost(APART), "{index} is lost, not {fate:?}"),
        }
        if fate == Fate::Proven && standings.len() == history.fields {
            let replaced = |other: &Deed, over| std::ptr::eq(other, deed) || other.sent > deed.done || over == u64::MAX;
            let proven = standings.iter().all(|(over, standing)| standing.is_none_or(|other| replaced(other, *over)));
            prop_assert!(proven, "{} is not proven", index);
        }
    }
    Ok(losses)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ledger_finds_exactly_the_losses(history in history_strategy()) {
        check_history(&history)?;
    }

    /// Simulates hot keys, many clients, overlapping and late writes, and a killed engine, on a store that honours its
    /// guarantee.
    #[test]
    fn an_honest_store_loses_nothing(history in history_strategy()) {
        let losses = check_history(&History { wrong: 0.0, kill: None, ..history })?;
        prop_assert_eq!(losses, 0);
    }
}

#[test]
fn a_killed_server_that_forgets_is_found_out() {
    let history = History {
        seed: 1,
        records: 2_000,
        fields: 1,
        whole: true,
        deletes: false,
        clients: 4,
        segments: 2,
        operations: 4_000,
        server_orders: true,
        wrong: 0.0,
        kill: Some((0.5, 500)),
        death: None,
    };
    assert!(check_history(&history).unwrap() > 20);
    assert_eq!(check_history(&History { kill: None, ..history }).unwrap(), 0);
}

#[test]
fn write_belongs_to_exactly_one_segment() {
    let history = History { segments: 3, ..WHOLE };
    let workload = history.create_workload();
    let mut operation = Operation::default();
    let mut next = 0;
    for index in 0..5_000 {
        workload.fill_operation(index, &mut operation);
        let write = matches!(operation.kind, Kind::Update | Kind::Insert | Kind::ReadModifyWrite | Kind::Delete);
        assert_eq!(workload.find_number(index), write.then_some(next));
        if write {
            assert_eq!(workload.find_index(next), Some(index));
            next += 1;
        }
    }
    let workload = &workload;
    let own = |k| {
        (0..next).filter(move |&number| Segment { k, n: 3 }.has_index(workload.find_index(number).unwrap())).count()
    };
    assert_eq!((0..3).map(own).sum::<usize>() as u64, next);
}

const WHOLE: History = History {
    seed: 1,
    records: 20,
    fields: 2,
    whole: false,
    deletes: true,
    clients: 2,
    segments: 1,
    operations: 5_000,
    server_orders: true,
    wrong: 0.0,
    kill: None,
    death: None,
};
