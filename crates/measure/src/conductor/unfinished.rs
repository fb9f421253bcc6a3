//! Operations that had not finished at a border of the trial: censored operations, and operations of the warm-up.

use loadstone_load::pace::PaceCursor;

use super::Conductor;
use crate::borders::{Borders, NEVER};
use crate::clock::LATE_NS;
use crate::observer::Censored;
use crate::recorder::flight::Unfinished;
use crate::recorder::reader::read_totals;
use crate::window::Ending;
use loadstone_wire::event::Carried;

/// A rate far above the capacity leaves billions of unsent operations, and adding each of them would delay the report.
/// After the first 2^19, they are therefore added in groups. The size of a group is 2^−18 of the number of unsent
/// operations before it, so the due times in a group differ by less than the resolution of the histograms.
const EXACT_BITS: u32 = 18;

impl Conductor<'_> {
    /// The operations that were due but are missing from the latency histograms, and the total number of due
    /// operations (`None` in a closed loop). `held_ns` is the time for which the engine was paused.
    pub(super) fn collect_censored(
        &self,
        borders: &Borders,
        ending: Ending,
        now: u64,
        held_ns: u64,
    ) -> (Censored, Option<u64>) {
        let mut censored = Censored::default();
        // An operation that was not late yet when the trial was stopped early does not count as unsent.
        let horizon_ns = match ending {
            Ending::Time => borders.end_ns,
            Ending::Count => NEVER,
            Ending::Stopped { at_ns, .. } => at_ns.saturating_sub(LATE_NS),
        };
        let mut add = |index: u64, due_ns: u64, sent: bool, count: u64| {
            // A sent operation has been waiting for its answer until now. An operation that was not sent before the
            // cut-off, or before a stop, is never sent.
            let until_ns = match ending {
                _ if sent => now,
                Ending::Stopped { at_ns, .. } => borders.cutoff_ns.min(at_ns),
                _ => borders.cutoff_ns.min(now),
            };
            let bounds = censored.bounds.entry(self.task.work.step_of(index)).or_default();
            let bound = until_ns.saturating_sub(due_ns);
            bounds[1].record_n(bound, count);
            bounds[2].record_n(bound.saturating_sub(held_ns), count);
            if sent {
                censored.unanswered += count;
                bounds[0].record_n(bound, count);
            } else {
                censored.unsent += count;
            }
        };
        for operation in self.workers.recorders.iter().flat_map(|recorder| recorder.list_unfinished()) {
            let Unfinished { index, due_ns, sent, counted } = operation;
            if counted && (sent || due_ns < horizon_ns) {
                add(index, due_ns, sent, 1);
            }
        }
        let Some(pace) = &self.task.pace else { return (censored, None) };
        let (segment, mut cursor) = (self.spec.segment, PaceCursor::default());
        if ending != Ending::Count {
            let first = self.task.scheduler.count_claimed().max(segment.share_of_total(borders.first_index));
            let mut due_at =
                |step| borders.start_ns.saturating_add(pace.due_ns(segment.global_index(step), &mut cursor));
            let mut step = first;
            while step < borders.steps {
                let mut count = ((step - first) >> EXACT_BITS).clamp(1, borders.steps - step);
                if count > 1 && due_at(step + count - 1) >= horizon_ns {
                    count = 1;
                }
                let due_ns = due_at(step);
                if due_ns >= horizon_ns {
                    break;
                }
                add(segment.global_index(step), due_ns, false, count);
                step += count;
            }
        }
        let answered = read_totals(&self.workers.recorders).operations;
        let due = match ending {
            Ending::Time => borders.count_due(pace, segment, borders.first_ns, borders.end_ns),
            _ => answered + censored.unanswered + censored.unsent,
        };
        (censored, Some(due))
    }

    /// The operations of the warm-up that had not completed when the window began. The wait for them lasted at most
    /// until `last_ns`.
    pub(super) fn collect_carried(&self, borders: &Borders, last_ns: u64) -> Carried {
        let all = read_totals(&self.workers.recorders);
        let left = self.workers.recorders.iter().flat_map(|recorder| recorder.list_unfinished());
        let (sent, unsent): (Vec<_>, Vec<_>) =
            left.filter(|operation| !operation.counted).partition(|operation| operation.sent);
        let claimed = self.task.scheduler.count_claimed();
        let unclaimed = self.spec.segment.share_of_total(borders.first_index).saturating_sub(claimed);
        let (unanswered, unsent) = (sent.len() as u64, unsent.len() as u64 + unclaimed);
        let still = if unanswered + unsent > 0 { last_ns.saturating_sub(borders.first_ns) } else { 0 };
        Carried { ended: all.carried, unanswered, unsent, ns_max: all.carried_ns.max(still) }
    }
}
