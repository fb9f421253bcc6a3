//! Tests of due times, waits, windows, and the cost of the loop.

use super::*;
use std::cell::Cell;

/// One client performs 1,000 operations per second. Each takes 0.1 ms, except for one stall of one second. Every
/// operation that became due before the backlog was cleared has waited, and its response time shows this to the
/// nanosecond.
#[test]
fn stall_delays_every_operation_due_in_it() {
    const STALLED: u64 = 1_000;
    let script: Script = Rc::new(|key| (if parse_number(key) == STALLED { 1_000 * MS } else { MS / 10 }, Status::Ok));
    let run = simulate_load(read_only_run(5_000), Some(&constant_rate(1_000.0)), 1, Segment::default(), 0, &script);

    // After the stall, the m-th operation is sent when the earlier operations have finished, at 1000 + 0.1·(m − 1) ms.
    // It is due at m ms.
    let response_of = |index: u64| match index.checked_sub(STALLED) {
        Some(0) => 1_000 * MS,
        Some(m) => (1_000 * MS + m * MS / 10).saturating_sub(m * MS).max(MS / 10),
        None => MS / 10,
    };
    assert_eq!(run.response_reading(), collect_reading((0..5_000).map(response_of)));
    let affected = (0..5_000).filter(|&index| response_of(index) > MS / 10).count();
    assert_eq!(affected, 1_111);
    let longer: u64 = run.response_reading().bucket_ranges().filter(|&(low, ..)| low > MS / 10).map(|(.., n)| n).sum();
    assert_eq!(longer, 1_111, "operations affected, as measured");

    let service = &run.service_readings()[&(Kind::Read, Status::Ok)];
    assert_eq!(*service, collect_reading((0..5_000).map(|index| if index == STALLED { 1_000 * MS } else { MS / 10 })));
    assert!(run.has_note("client-limited") && !run.has_note("generator-limited"));
}

#[test]
fn late_wakeup_is_generator_limited() {
    let script: Script = Rc::new(|_| (MS / 10, Status::Ok));
    let run = simulate_load(read_only_run(2_000), Some(&constant_rate(100.0)), 4, Segment::default(), 2 * MS, &script);
    assert!(run.has_note("generator-limited") && !run.has_note("client-limited"));
    // Lateness is nevertheless part of the response time: the first operation is due at once, and all later operations
    // are sent 2 ms late.
    assert_eq!(
        run.response_reading(),
        collect_reading((0..2_000).map(|i| if i == 0 { MS / 10 } else { 2 * MS + MS / 10 }))
    );
    let punctual = simulate_load(read_only_run(2_000), Some(&constant_rate(100.0)), 4, Segment::default(), 0, &script);
    assert!(!punctual.has_note("generator-limited") && !punctual.has_note("client-limited"));
}

#[test]
fn segment_histograms_add_up_to_the_whole() {
    let script: Script = Rc::new(|key| (MS / 10 + parse_number(key) * 7_919 % MS, Status::Ok));
    let pace = constant_rate(500.0);
    let segments = |n: u64| {
        let mut all = IntervalAdditions::default();
        for k in 0..n {
            let segment = Segment { k, n };
            let clients = segment.share_of_total(8) as usize;
            let run = simulate_load(read_only_run(4_000), Some(&pace), clients, segment, 0, &script);
            run.additions.values().for_each(|more| all.merge_additions(more));
        }
        all.latencies.remove(&(Kind::Cleanup.step(), Status::Ok));
        all.latencies
    };
    let whole = segments(1);
    assert_eq!(whole[&(Kind::Read.step(), Status::Ok)][1].count(), 4_000);
    for n in [2, 4, 7, 8] {
        assert_eq!(segments(n), whole, "{n} segments");
    }
}

#[test]
fn closed_loop_has_no_due_time() {
    let script: Script = Rc::new(|_| (MS, Status::Ok));
    let run = simulate_load(read_only_run(100), None, 4, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 25 * MS, "four clients share a hundred operations of a millisecond");
    assert!(run.recorders.iter().all(|recorder| recorder.waits.is_none()));
    assert_eq!(run.all_readings()[&(Kind::Read.step(), Status::Ok)][1].count(), 0);
}

#[test]
fn a_late_answer_does_not_stretch_the_window() {
    // Ten clients perform operations of one millisecond; one answer is 1.8 s late in a window of one second.
    let script: Script = Rc::new(|key| (if parse_number(key) == 400 { 1_800 * MS } else { MS }, Status::Ok));
    let setting = Setting { window_ns: 1_000 * MS, ..Setting::new(None, 10) };
    let run = run_workload(read_only_run(1_000_000), &setting, &script);
    let totals = run.totals();
    let window = build_window(&run.borders, Ending::Time, &totals, None);
    assert_eq!(window.length_ns, 1_000 * MS);
    // Operations that are sent in the last millisecond finish at or after the end, as does the late operation.
    assert_eq!((totals.operations, window.completed), (9 * 1_000 + 41, 9 * 999 + 40));
    assert_eq!(run.elapsed_ns, 40 * MS + 1_800 * MS);
}

/// Four clients perform 500 operations per second for two seconds. The system is silent from 1.0 to 2.1 s.
#[test]
fn stall_until_the_end_is_measured_completely() {
    let timer = SimTimer::default();
    let (from, to) = (1_000 * MS, 2_100 * MS);
    let script = Scripted::silent_between(&timer, from, to, MS / 2);
    let pace = constant_rate(500.0);
    let setting = Setting { window_ns: 2_000 * MS, ..Setting::new(Some(&pace), 4) };
    let run = run_in(&timer, read_only_run(1_000_000), &setting, &script);
    assert_eq!(run.totals().operations, 1_000, "everything due, some of it answered after the end");
    assert_eq!(run.response_reading().count(), 1_000);
    let slow: u64 = run.response_reading().bucket_ranges().filter(|&(low, ..)| low > 100 * MS).map(|(.., n)| n).sum();
    assert_eq!(slow, 500, "those due from 1.0 s on, and the last one before");
}

/// The engine is paused for 0.3 s, while the system still answers within half a millisecond.
#[test]
fn engine_pause_is_not_charged_to_the_system() {
    for (clients, executor) in [(1, false), (4, false), (1, true), (4, true)] {
        let timer = SimTimer::default();
        timer.pause_between(500 * MS + 300_000, 800 * MS);
        let script: Script = Rc::new(|_| (MS / 2, Status::Ok));
        let pace = constant_rate(1_000.0);
        let setting = Setting { window_ns: 2_000 * MS, executor, ..Setting::new(Some(&pace), clients) };
        let run = run_in(&timer, read_only_run(1_000_000), &setting, &script);
        assert_eq!(run.lower_bound().count(), 2_000);
        let above =
            |reading: &Reading| reading.bucket_ranges().filter(|&(low, ..)| low > MS / 2).map(|(.., n)| n).sum::<u64>();
        assert_eq!(above(&run.lower_bound()), 0, "the system never took longer");
        assert!(above(&run.response_reading()) > 300, "but users waited");
        let totals = run.totals();
        assert_eq!(totals.late_client, 0);
        assert!(totals.late_generator > 290, "{totals:?}");
    }
}

/// The system stalls while the engine runs. Ticks that are always slightly late must not reduce the system's share.
#[test]
fn system_stall_is_not_charged_to_the_generator() {
    let pace = constant_rate(400.0);
    for executor in [false, true] {
        let timer = SimTimer::default();
        let script = Scripted::silent_between(&timer, 500 * MS, 900 * MS, MS / 2);
        let late_ns = 60_000;
        let setting = Setting { window_ns: 2_000 * MS, late_ns, executor, ..Setting::new(Some(&pace), 4) };
        let run = run_in(&timer, read_only_run(1_000_000), &setting, &script);
        let totals = run.totals();
        assert_eq!(totals.late_generator, 0, "{totals:?}");
        let (upper, lower) = (run.response_reading(), run.lower_bound());
        let above = |reading: &Reading| {
            reading.bucket_ranges().filter(|&(low, ..)| low > 100 * MS).map(|(.., n)| n).sum::<u64>()
        };
        assert_eq!(above(&lower), above(&upper));
        assert!(lower.sum() * 100 > upper.sum() * 99, "{} of {}", lower.sum(), upper.sum());
    }
}

/// A wait during which the client would have been busy anyway is attributed to the client.
#[test]
fn only_generator_delay_is_subtracted_from_wait() {
    // The operation is due at 100. The client is free at 150, 20 later than without late sends, and sends at 155.
    assert_eq!(Wait::new(100, 150, 20, 155), Wait { client: 30, generator: 25, idle: 5 });
    assert_eq!(Wait::new(100, 150, 80, 155), Wait { client: 0, generator: 55, idle: 5 });
    assert_eq!(
        Wait::new(100, 90, 80, 103),
        Wait { client: 0, generator: 3, idle: 3 },
        "idle before it was due: no delay"
    );
}

#[test]
fn late_operation_is_blamed_on_the_longer_delay() {
    // The times are: due, client free, earlier delay caused by the generator, and sent.
    for (times, late) in [
        ((0, 11, 0, 11), false),
        ((0, 100, 60, 100), true),
        ((0, 100, 40, 100), false),
        ((0, 100, 0, 111), true),
        ((0, 0, 0, 10), false),
    ] {
        let (due, free, delay, sent) = times;
        assert_eq!(Wait::new(due, free, delay, sent).is_late(10), late, "{times:?}");
    }
}

/// The rate is 1,000 operations per second. The system is silent for nearly all of a warm-up of three seconds.
#[test]
fn warm_up_backlog_adds_no_throughput() {
    let timer = SimTimer::default();
    let script = Scripted::silent_between(&timer, 50 * MS, 2_990 * MS, MS / 10);
    let pace = constant_rate(1_000.0);
    let setting = Setting { warmup_ns: 3_000 * MS, window_ns: 1_000 * MS, ..Setting::new(Some(&pace), 4) };
    let run = run_in(&timer, read_only_run(1_000_000), &setting, &script);
    let (borders, totals) = (run.borders, run.totals());
    let due = borders.count_due(&pace, Segment::default(), borders.first_ns, borders.end_ns);
    assert!(totals.in_window > 3_000, "{totals:?}");
    assert_eq!(build_window(&borders, Ending::Time, &totals, Some(due)).completed, 1_000);
    // Four clients finish 40 operations per ms; about 400 of 2,946 operations finish before the window.
    assert!((2_400..2_700).contains(&totals.carried), "{totals:?}");
    assert!((60 * MS..80 * MS).contains(&totals.carried_ns), "{totals:?}");
}

/// Every due operation is either answered, failed or censored, as a brute-force count confirms.
#[test]
fn every_due_operation_has_an_outcome() {
    let mut draws = loadstone_load::random::Draws::new(20, 0, loadstone_load::random::Purpose::KindSequence);
    for case in 0..300 {
        let per_second = 20.0 + draws.draw_below(2_000) as f64;
        let pace = constant_rate(per_second);
        let window_ns = (200 + draws.draw_below(2_000)) * MS;
        let from = draws.draw_below(window_ns + 500 * MS);
        let to = from + draws.draw_below(3_000) * MS;
        let warmup_ns = draws.draw_below(3) * 100 * MS;
        let interval_ns = (100 + draws.draw_below(400)) * MS;
        let segments = 1 + draws.draw_below(3);
        let clients = (segments + draws.draw_below(12)) as usize;
        let service_ns = 1 + draws.draw_below(4 * MS);
        let mut due_of_all = 0;
        for k in 0..segments {
            let segment = Segment { k, n: segments };
            let share = segment.share_of_total(clients as u64) as usize;
            let setting = Setting { segment, warmup_ns, window_ns, interval_ns, ..Setting::new(Some(&pace), share) };
            let timer = SimTimer::default();
            let script = Scripted::silent_between(&timer, from, to, service_ns);
            let run = run_in(&timer, read_only_run(u64::MAX / 4), &setting, &script);
            let (borders, totals) = (run.borders, run.totals());
            let due = borders.count_due(&pace, segment, borders.first_ns, borders.end_ns);
            // The brute-force count considers every index of the segment.
            let mut cursor = PaceCursor::default();
            let dues = (0..).map(|step| pace.due_ns(segment.global_index(step), &mut cursor));
            let counted = dues.take_while(|&ns| ns < borders.end_ns).filter(|&ns| ns >= borders.first_ns).count();
            assert_eq!(due, counted as u64, "case {case}: due");
            let left = run.recorders.iter().flat_map(|recorder| recorder.list_unfinished());
            let left: Vec<_> = left.filter(|operation| operation.counted).collect();
            let claimed = run.task.scheduler.count_claimed().max(segment.share_of_total(borders.first_index));
            let unclaimed = segment.share_of_total(pace.first_due_at(borders.end_ns)).saturating_sub(claimed);
            assert_eq!(totals.operations + left.len() as u64 + unclaimed, due, "case {case}: nothing is missing");
            assert!(left.iter().all(|operation| !operation.sent), "case {case}: everything sent was answered");
            // Each interval has the operations that were due in it, and counts the operations that finished in it.
            let ends: u64 = run.additions.values().map(|more| more.ended).sum();
            let in_window = totals.in_window;
            assert_eq!(run.additions.values().map(|more| more.completed).sum::<u64>(), in_window, "case {case}");
            assert!(ends >= in_window && in_window <= totals.succeeded + totals.warmup);
            for (&number, more) in &run.additions {
                let start = borders.first_ns + number * borders.interval_ns;
                let within = borders.count_due(&pace, segment, start, borders.interval_end(number));
                let counts: u64 = more.counts.iter().sum();
                assert!(counts <= within, "case {case}: interval {number} has {counts} of {within}");
                let reads =
                    more.latencies.get(&(Kind::Read.step(), Status::Ok)).map_or(0, |histograms| histograms[1].count());
                assert_eq!(reads, counts, "case {case}: interval {number}");
            }
            let answered = run.additions.values().flat_map(|more| more.counts).sum::<u64>();
            assert_eq!(answered, totals.operations, "case {case}");
            due_of_all += due;
        }
        let setting = Setting { warmup_ns, window_ns, ..Setting::new(Some(&pace), 1) };
        let borders = setting.borders(None);
        let whole = borders.count_due(&pace, Segment::default(), borders.first_ns, borders.end_ns);
        assert_eq!(due_of_all, whole, "case {case}: segments add up");
    }
}

/// A hundred times as many operations cause no additional allocations.
#[test]
fn the_loop_does_not_allocate_per_operation() {
    for (pace, virtually) in
        [(None, false), (Some(constant_rate(1e9)), false), (None, true), (Some(constant_rate(1e9)), true)]
    {
        let mix = Mix { read: 0.4, update: 0.3, insert: 0.1, scan: 0.1, read_modify_write: 0.1, delete: 0.0 };
        let count = |operations: u64| {
            let workload = CoreRun::new(core_spec(mix, operations.max(1_000)), 1).unwrap();
            let start_ns = ThreadTimer::default().now_ns();
            let setting = Setting { interval_ns: NEVER / 2, ..Setting::new(pace.as_ref(), 1) };
            let borders = setting.borders(Some(operations)).starting_at(start_ns);
            let task = task_of(workload, pace.as_ref(), &borders, &setting);
            let shape = RecorderShape { sinks: vec![Sink::HdrNs, Sink::YcsbHdrUs], ..shape(pace.is_some()) };
            let recorder = Recorder::new(&shape, 1);
            let before = allocations::count_allocations();
            let pulse = Pulse::new("conductor".to_owned(), 0, TICK_NS);
            let context =
                ClientContext { recorder: &recorder, client: 0, worker: 0, pulse: &pulse, stripe: &Cell::default() };
            let timer = ThreadTimer::default();
            match (&pace, virtually) {
                (_, true) => {
                    let mut session = VirtualSession::new(NullSession::default());
                    drive_thread(&task, &borders, timer, &mut session, context);
                }
                (None, false) => drive_closed(&task, &borders, timer, &mut NullSession::default(), context),
                (Some(_), false) => drive_thread(&task, &borders, timer, &mut NullSession::default(), context),
            }
            allocations::count_allocations() - before
        };
        let (few, many) = (count(1_000), count(100_000));
        assert_eq!(few, many, "open loop: {}, virtual calls: {virtually}", pace.is_some());
        assert!(few > 0, "the allocator counts");
    }
}
