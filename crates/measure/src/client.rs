//! The timing loop, which is the only one in the engine.
//!
//! A client claims the next index, fills its operation, waits until it is due, reads the clock, has its actor perform
//! the operation, and counts it. The loop itself neither allocates memory nor takes locks, although the store may.

use std::cell::Cell;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use loadstone_load::Status;
use loadstone_load::pace::{Pace, PaceCursor};

use crate::actor::{Actor, Outcome, Stopwatch};
use crate::borders::Borders;
use crate::clock::{Clock, ThreadTimer, Timer};
use crate::lateness::{Lateness, Wait};
use crate::pulse::Pulse;
use crate::recorder::{Recorder, StepRecord};
use crate::scheduler::Stripe;
use crate::sink::StepTimes;
use crate::task::{Task, Work};
use loadstone_session::Connection;

/// The recorder of the worker that drives a client, and the client's number in it.
#[derive(Clone, Copy, Debug)]
pub struct ClientContext<'a> {
    pub recorder: &'a Recorder,
    /// The client's number among the clients of the recorder.
    pub client: usize,
    pub worker: usize,
    /// Records pauses of the client's thread: the pulse of its executor, or the conductor's if the client has a
    /// separate thread.
    pub pulse: &'a Pulse,
    /// The operations claimed by the client's thread, or by the client itself.
    pub stripe: &'a Cell<Stripe>,
}

/// Calls [`Status::is_failure`] without inlining it into the loop.
#[cold]
#[inline(never)]
fn is_failure(status: Status) -> bool {
    status.is_failure()
}

/// Waits for a future, either asynchronously or by blocking the thread.
macro_rules! wait {
    (async, $future:expr) => {
        $future.await
    };
    (thread, $future:expr) => {
        block_on($future)
    };
}

/// The timing loop. It is a macro because it is compiled twice: a future keeps its state in memory between waits, and
/// writes and reads it for each operation. The version for a thread in a closed loop, whose futures are always ready,
/// saves 65 of 417 instructions per operation, and needs no due times.
macro_rules! timing_loop {
    ($wait:tt, $pace:expr, $task:expr, $borders:expr, $timer:expr, $session:expr, $context:expr) => {{
        let (task, borders, timer) = ($task, $borders, $timer);
        let pace: Option<&Pace> = $pace;
        let ClientContext { recorder, client, worker, pulse, stripe } = $context;
        let flight = &recorder.flights[client];
        let mut actor = W::create_actor(task, $session, worker);
        let mut operation = W::Operation::default();
        let mut watch = Stopwatch::new(timer, recorder);
        let mut cursor = PaceCursor::default();
        let open = pace.is_some();
        // With a rate, overdue operations are still sent for a while. In a closed loop, no operation can be overdue.
        let last_send_ns = if open { borders.cutoff_ns } else { borders.end_ns };
        let mut free = timer.now_ns();
        // The client's delay caused by the generator: how much earlier the client would be free if the generator had
        // never been late.
        let mut delay = 0;
        while let Some(index) = task.scheduler.claim_index(stripe) {
            task.work.fill_operation(index, &mut operation);
            if let Some(pace) = pace {
                let due = borders.start_ns.saturating_add(pace.due_ns(index, &mut cursor));
                if due >= borders.end_ns {
                    task.scheduler.reach_end();
                    break;
                }
                flight.take_operation(index, due, borders.is_counted(due));
                if due > free {
                    wait!($wait, timer.wait_until(due, || task.scheduler.is_halted()));
                    if task.scheduler.is_halted() {
                        break;
                    }
                }
                watch.due_ns = due;
            }
            let sent = timer.now_ns();
            if sent >= last_send_ns {
                task.scheduler.reach_end();
                break;
            }
            watch.sent_ns = sent;
            watch.ready_ns = free;
            if !open {
                watch.due_ns = sent;
            }
            let due = watch.due_ns;
            let counted = watch.due_in.seek_interval(borders, due);
            if counted && !task.scheduler.count_operation() {
                break;
            }
            flight.send_operation(index, due, counted);
            watch.counted = counted;
            if open {
                let wait = Wait::new(due, free, delay, sent);
                if counted {
                    recorder.record_wait(wait, sent >= borders.overdue_ns);
                    actor.begin_operation(&operation, watch.due_in.interval());
                }
                watch.ready_ns = due.max(free);
                watch.lateness = Some(Lateness { sent_ns: wait.generator, pulse, held_ns: pulse.pause_ns(sent) });
            }
            let Outcome { status, done_ns, rows, bytes } = wait!($wait, actor.perform_operation(&operation, &watch));
            let elsewhere = !watch.due_in.contains(done_ns);
            if counted {
                let response_ns = done_ns.saturating_sub(due);
                recorder.record_operation(watch.due_in.interval(), status, (rows, bytes), response_ns, elsewhere);
                if open {
                    actor.finish_operation(&operation, watch.due_in.interval(), status, response_ns);
                }
                flight.end_operation(done_ns);
            } else {
                recorder.count_warm_up(done_ns.saturating_sub(borders.first_ns));
                flight.end_of_warm_up();
            }
            if elsewhere && borders.is_counted(done_ns) {
                recorder.count_end(borders.interval(done_ns), status);
            }
            free = done_ns;
            if open && let Some(lateness) = &watch.lateness {
                delay = lateness.lead_at(done_ns);
            }
            if status != Status::Ok && is_failure(status) {
                if counted && actor.is_unsent() {
                    recorder.count_unreached();
                }
                // With a rate, a pause would delay all later operations.
                if !open {
                    wait!($wait, actor.pause());
                    free = timer.now_ns();
                    if counted {
                        recorder.record_pause(free.saturating_sub(done_ns));
                    }
                }
            }
            wait!($wait, timer.yield_to_clients());
        }
        let sent = timer.now_ns();
        let (step, status) = wait!($wait, actor.close());
        let done = timer.now_ns();
        recorder.session_closed(done);
        // Closing a session is not part of an operation, so it is recorded in the last interval.
        let interval = borders.interval(sent.min(borders.end_ns - 1));
        recorder.record_step(StepRecord {
            id: step,
            status,
            times: StepTimes { due: sent, sent, done },
            lateness: None,
            interval,
        });
        if !status.is_ok() {
            task.failures.count_unclosed(status);
        }
    }};
}

/// Drives one client of an executor: performs operations until none are left, then closes the session.
pub async fn drive_client<T: Timer, S: Connection, W: Work<S>>(
    task: &Task<W>,
    borders: &Borders,
    timer: &T,
    session: &mut S,
    context: ClientContext<'_>,
) {
    timing_loop!(async, task.pace.as_ref(), task, borders, timer, session, context);
}

/// [`drive_client`] for a client on a separate thread, whose futures are always ready.
pub fn drive_thread<S: Connection, W: Work<S>>(
    task: &Task<W>,
    borders: &Borders,
    timer: ThreadTimer,
    session: &mut S,
    context: ClientContext<'_>,
) {
    block_on(drive_client(task, borders, &timer, session, context));
}

/// [`drive_thread`] in a closed loop, compiled for one type of session.
#[inline(never)]
pub fn drive_closed<S: Connection, W: Work<S>>(
    task: &Task<W>,
    borders: &Borders,
    timer: ThreadTimer,
    session: &mut S,
    context: ClientContext<'_>,
) {
    timing_loop!(thread, None, task, borders, &ClosedTimer(timer), session, context);
}

/// Runs a future that is expected to be always ready. A store that declares its calls as blocking must not return
/// pending futures; if it does, they are polled every 50 µs.
#[expect(clippy::inline_always, reason = "the timing loop would keep the state of the future in memory")]
#[inline(always)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The timer of a closed loop on a thread. It has a separate type so that the actor is compiled for this loop alone and
/// inlined into it.
#[derive(Debug)]
struct ClosedTimer(ThreadTimer);

impl Clock for ClosedTimer {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
}

impl Timer for ClosedTimer {
    async fn wait_until(&self, ns: u64, stopped: impl Fn() -> bool) {
        self.0.wait_until(ns, stopped).await;
    }

    #[inline]
    async fn yield_to_clients(&self) {}
}
