//! The timing loop. There is exactly one.
//!
//! A client takes the next index, fills its operation, waits until it is due, reads the clock, has its actor perform it, and
//! counts it. Nothing in it allocates or locks; the store may.

use loadstone_load::pace::Cursor;

use crate::actor::{Actor, Stopwatch, Task, Work};
use crate::borders::Borders;
use crate::clock::Timer;
use crate::recorder::{Ended, IntervalCursor, Recorder, Step};
use crate::scheduler::Taken;
use crate::sink::Times;
use loadstone_stores::Session;

/// Where one client records: its worker's recorder, and its number there.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The recorder.
    pub recorder: &'a Recorder,
    /// The client's number among those of the recorder.
    pub client: usize,
    /// The worker's number.
    pub worker: usize,
}

/// One client: loops until there is nothing more to do, then closes its session.
pub async fn drive<T: Timer, S: Session, W: Work>(
    task: &Task<W>,
    borders: &Borders,
    timer: &T,
    session: &mut S,
    Place { recorder, client, worker }: Place<'_>,
) {
    let flight = &recorder.flights[client];
    let mut actor = W::actor(task, session, worker);
    let mut operation = W::Operation::default();
    let (mut cursor, mut taken) = (Cursor::default(), Taken::default());
    let (mut due_in, mut done_in) = (IntervalCursor::default(), IntervalCursor::default());
    // At a rate, what is overdue is still sent for a while; in a closed loop nothing is overdue.
    let last_send_ns = if task.pace.is_some() { borders.cutoff_ns } else { borders.end_ns };
    let mut free = timer.now_ns();
    while let Some(index) = task.scheduler.claim(&mut taken) {
        task.workload.fill(index, &mut operation);
        let due = match &task.pace {
            None => None,
            Some(pace) => {
                let due = borders.start_ns.saturating_add(pace.due_ns(index, &mut cursor));
                if due >= borders.end_ns {
                    task.scheduler.reach_end();
                    break;
                }
                if borders.counts(due) {
                    flight.take(index, due);
                }
                if due > free {
                    timer.until(due, || task.scheduler.halted()).await;
                    if task.scheduler.halted() {
                        break;
                    }
                }
                Some(due)
            }
        };
        let sent = timer.now_ns();
        if sent >= last_send_ns {
            task.scheduler.reach_end();
            break;
        }
        let due_ns = due.unwrap_or(sent);
        let counted = borders.counts(due_ns);
        let (mut interval, mut generator_ns) = (0, 0);
        if counted {
            if !task.scheduler.count() {
                break;
            }
            flight.send(index, due_ns);
            interval = due_in.at(borders, due_ns);
            if due.is_some() {
                generator_ns = recorder.wait(due_ns, free, sent);
            }
        }
        let ready_ns = due.map_or(free, |due| due.max(free));
        let watch = Stopwatch { timer, recorder, due_ns, sent_ns: sent, ready_ns, generator_ns, interval, counted };
        let outcome = actor.perform(&operation, &watch).await;
        let done_ns = outcome.done_ns;
        if borders.counts(done_ns) {
            recorder.ended_in(done_in.at(borders, done_ns), outcome.status);
        }
        if counted {
            let (status, rows, bytes) = (outcome.status, outcome.rows, outcome.bytes);
            recorder.operation(&Ended { status, rows, bytes, due_ns, done_ns, interval });
            flight.end();
        } else {
            recorder.warmed_up();
        }
        free = done_ns;
        if outcome.status.is_failure() {
            actor.rest().await;
            free = timer.now_ns();
        }
        timer.turn().await;
    }
    let sent = timer.now_ns();
    let (step, status) = actor.close().await;
    let done = timer.now_ns();
    recorder.session_closed(done);
    // Beside the operations, and so with the last interval.
    let interval = borders.interval(sent.min(borders.end_ns - 1));
    recorder.step(Step { id: step, status, times: Times { due: sent, sent, done }, generator_ns: 0, interval });
    if !status.is_ok() {
        task.failures.count_unclosed(status);
    }
}

#[cfg(test)]
mod tests;
