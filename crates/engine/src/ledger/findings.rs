//! The output of the `ledger` command.

use loadstone_load::core::CoreRun;
use loadstone_load::ledger::{Evidence, Fate, Ledger, WriteOutcome, WriteState, Writes};
use loadstone_load::{RecordWorkload, Status};
use serde::Serialize;

use super::reading::{FieldCounts, FieldPlace, LISTED, RecordsReading};
use loadstone_kinds::mapping::Mapping;
use loadstone_wire::event::Missed;
use loadstone_wire::merge_rule::Merge;

/// Maximum time from the order to kill a process until the process ends, ns. The lab waits equally long.
const KILL_NS_MAX: u64 = 10_000_000_000;
/// Minimum proven share of the acknowledged writes; below it, the read-back proves nothing.
const PROVEN_MIN: f64 = 0.95;

/// All findings of a read-back.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    writes: WriteCounts,
    ledger: LedgerFacts,
    read: ReadCounts,
    #[serde(rename = "found")]
    fields: FieldCounts,
    lost: Lost,
    stale: Stale,
    proven: Proven,
    /// Whether the checker found the faults that it planted; `null` if there was no record to damage.
    proved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proof>,
    misses: MissCounts,
    /// The first value that no write of the run wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_wrong: Option<FieldPlace>,
    /// Whether the strongest level could not be read, so that the absence of a write proves nothing.
    #[serde(skip)]
    undecidable: bool,
}

/// The writes in the ledger.
#[derive(Debug, Default, Serialize)]
struct WriteCounts {
    acknowledged: u64,
    refused: u64,
    maybe: u64,
    unknown: u64,
    /// Acknowledged writes with an earlier attempt that may still be applied.
    retried: u64,
}

/// Facts about the completeness of the ledger.
#[derive(Debug, Default, Serialize)]
struct LedgerFacts {
    /// The number of the run.
    run: Option<u64>,
    /// Whether the engine closed the ledger.
    closed: bool,
    beyond: u64,
    ticks_lost: u64,
    exceptions_lost: u64,
}

#[derive(Debug, Default, Serialize)]
struct ReadCounts {
    records: u64,
    fields: u64,
    /// The consistency level on which the findings are based; `null` if reads have no level.
    level: Option<String>,
    /// The consistency level of the workload's own reads.
    own_level: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Lost {
    /// Number of missing acknowledged writes, including writes that later writes replaced.
    writes: u64,
    /// Number of missing acknowledged writes whose loss the store's guarantee allows when the process is killed.
    allowed: u64,
    /// Number of missing acknowledged writes that were sent after the last crash, so that no crash explains their loss.
    later: u64,
    /// Writes missing at the strongest readable level. As a stronger level exists, they are not necessarily lost.
    undecided: u64,
    /// Number of records in which a loaded value is missing.
    loaded: u64,
    /// Age, at the time of the kill, of the oldest write that the guarantee allows to be lost, ms; `null` if no bound
    /// is stated, or if all losses are allowed.
    window_ms: Option<f64>,
    /// The fields of the first few losses.
    first: Vec<FieldPlace>,
    /// The age of the oldest lost write at the time of the crash.
    oldest: Option<Oldest>,
    #[serde(skip)]
    window_ns: Option<u64>,
}

/// Acknowledged writes that are missing at the workload's own level but present at the strongest level.
#[derive(Debug, Default, Serialize)]
struct Stale {
    writes: u64,
}

/// Acknowledged writes that are present or were replaced by later writes.
#[derive(Debug, Default, Serialize)]
struct Proven {
    writes: u64,
    /// Share of the acknowledged writes that are proven to be present or lost; `null` if there are none.
    share: Option<f64>,
}

/// The outcome of the faults that the checker planted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Proof {
    /// Whether the checker found the corrupted value that it planted.
    pub corrupted: bool,
    /// Whether the checker found that the removed write was missing.
    pub removed: bool,
    /// Whether both records were restored.
    pub restored: bool,
    #[serde(skip)]
    repairs: u32,
    /// The status with which the store refused to plant a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Proof {
    /// Records the result of an attempt to plant a fault. Returns whether the fault was planted.
    pub fn note_planting(&mut self, status: Status) -> bool {
        self.refused = (!status.is_ok()).then(|| status.name().to_owned());
        status.is_ok()
    }

    /// The outcome for faults planted in an answer in memory, which need no repair.
    pub const fn from_answer(corrupted: bool, removed: bool) -> Self {
        Self { corrupted, removed, restored: true, repairs: 0, refused: None }
    }

    /// Records whether a record was repaired.
    pub fn note_repair(&mut self, repaired: bool) {
        self.restored = repaired && (self.restored || self.repairs == 0);
        self.repairs += 1;
    }

    fn is_proven(&self) -> bool {
        self.corrupted && self.removed && self.restored
    }
}

/// Reads that did not find a record inserted by another segment.
#[derive(Debug, Default, Serialize)]
struct MissCounts {
    /// Reads sent after the insert had been acknowledged, which should have found the record.
    failed: u64,
    /// Reads whose insert was in progress, had failed, or has an unknown outcome: no conclusion is possible.
    not_yet: u64,
    /// Reads that the events count but do not list individually.
    unlisted: u64,
    /// The keys of the first few failed reads.
    first: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Oldest {
    index: u64,
    at_least_ms: f64,
    at_most_ms: f64,
}

/// The first crash that can explain the loss of a write sent at `sent`. A process may still send writes shortly after
/// the order to kill it.
pub fn find_crash(crashes: &[u64], sent: u64) -> Option<u64> {
    crashes.iter().copied().find(|crash| crash.saturating_add(KILL_NS_MAX) >= sent)
}

impl Findings {
    /// The findings from the ledgers alone, without reading the store. `writes` yields the index and number of each
    /// write of the run.
    pub fn from_ledgers(
        ledgers: &[Ledger<Mapping>],
        evidence: &Evidence<'_, Mapping>,
        writes: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let mut all = Self::default();
        all.ledger.run = ledgers.first().and_then(|ledger| ledger.run().number);
        all.ledger.closed = ledgers.iter().all(|ledger| ledger.count_claimed().is_some());
        for ledger in ledgers {
            all.ledger.beyond += ledger.count_beyond();
            all.ledger.ticks_lost += ledger.ticks_lost();
            all.ledger.exceptions_lost += ledger.exceptions_lost();
        }
        for (index, number) in writes {
            let state = evidence.state(index, number);
            match state {
                Some(WriteState::Acknowledged | WriteState::Retried) => all.writes.acknowledged += 1,
                Some(WriteState::Refused) => all.writes.refused += 1,
                Some(WriteState::Maybe) => all.writes.maybe += 1,
                Some(WriteState::Unknown) => all.writes.unknown += 1,
                None => {}
            }
            all.writes.retried += u64::from(state == Some(WriteState::Retried));
        }
        all
    }

    /// Judges the `count` reads that a segment could not judge. Only the reads in `listed` are known individually.
    pub fn judge_misses(
        &mut self,
        count: u64,
        listed: &[Missed],
        evidence: &Evidence<'_, Mapping>,
        workload: &CoreRun,
        key: impl Fn(u64) -> String,
    ) {
        self.misses.unlisted += count.saturating_sub(listed.len() as u64);
        for miss in listed {
            let acknowledged = workload
                .write_number(miss.index)
                .is_some_and(|number| evidence.is_acknowledged_before(miss.index, number, miss.sent_unix_ns));
            if !acknowledged {
                self.misses.not_yet += 1;
                continue;
            }
            self.misses.failed += 1;
            if let Some(write) = workload.find_write(miss.index).filter(|_| self.misses.first.len() < LISTED) {
                self.misses.first.push(key(write.record));
            }
        }
    }

    /// Records the maximum age of a write that the store's guarantee allows to be lost when the process is killed, ns.
    pub fn note_guarantee(&mut self, loss_ns_max: Option<u64>) {
        self.lost.window_ns = loss_ns_max;
        self.lost.window_ms = loss_ns_max.filter(|&ns| ns < u64::MAX).map(|ns| ns as f64 / 1e6);
    }

    /// Records the consistency levels of the reads.
    pub fn note_levels(&mut self, decisive: Option<String>, own: Option<String>) {
        (self.read.level, self.read.own_level) = (decisive, own);
    }

    /// Records that servers needed for the strongest level were unavailable.
    pub fn note_weaker_level(&mut self) {
        self.undecidable = true;
    }

    /// Adds the reading on which the findings for a range of records are based.
    pub fn add_reading(&mut self, reading: RecordsReading) {
        self.read.records += reading.records;
        self.read.fields += reading.fields;
        self.fields.merge(reading.counts);
        self.lost.loaded += reading.loaded;
        let room = LISTED - self.lost.first.len();
        self.lost.first.extend(reading.first.into_iter().take(room));
        self.first_wrong = self.first_wrong.take().or(reading.first_wrong);
    }

    /// Counts an acknowledged write by its fate. `crashes` contains the times at which the system crashed, in order, ns
    /// of Unix time.
    pub fn count_outcome(&mut self, outcome: &WriteOutcome, crashes: &[u64]) {
        match outcome.fate {
            Fate::Proven => self.proven.writes += 1,
            Fate::Undecided => {}
            Fate::Lost if self.undecidable => self.lost.undecided += 1,
            Fate::Lost => {
                self.lost.writes += 1;
                match find_crash(crashes, outcome.span.sent) {
                    Some(crash_ns) => self.judge_age(outcome, crash_ns),
                    None => self.lost.later += u64::from(!crashes.is_empty()),
                }
            }
        }
        self.stale.writes += u64::from(outcome.missed && outcome.fate != Fate::Lost);
    }

    /// Determines the age of a lost write at the time of the crash, and whether its loss is allowed. The age is
    /// negative if the write was completed after the crash.
    fn judge_age(&mut self, outcome: &WriteOutcome, crash_ns: u64) {
        let age = |ns: u64| (i128::from(crash_ns) - i128::from(ns)).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let (least_ns, most_ns) = (age(outcome.span.done), age(outcome.span.sent));
        // Only a write that is certainly older than the bound is evidence against the store.
        let allowed =
            self.lost.window_ns.is_some_and(|window| i128::from(least_ns) <= i128::from(window) && window > 0);
        self.lost.allowed += u64::from(allowed);
        let (at_least_ms, at_most_ms) = (least_ns as f64 / 1e6, most_ns as f64 / 1e6);
        let oldest = self.lost.oldest.get_or_insert(Oldest { index: outcome.index, at_least_ms, at_most_ms });
        if at_least_ms > oldest.at_least_ms {
            (oldest.index, oldest.at_least_ms) = (outcome.index, at_least_ms);
        }
        // Another lost write may have been sent earlier and acknowledged later.
        oldest.at_most_ms = oldest.at_most_ms.max(at_most_ms);
    }

    /// Whether the checker has yet to prove that it finds planted faults.
    pub fn needs_proof(&self) -> bool {
        self.proved.is_none()
    }

    /// Records the outcome of the planted faults; `None` if there was no record to damage.
    pub fn note_proof(&mut self, proof: Option<Proof>) {
        self.proved = proof.as_ref().map(Proof::is_proven);
        self.proof = proof;
    }

    /// Calculates the share of acknowledged writes that are proven to be present or lost.
    pub fn calculate_shares(&mut self) {
        if self.writes.acknowledged > 0 {
            let decided = self.proven.writes + self.lost.writes;
            self.proven.share = Some(decided as f64 / self.writes.acknowledged as f64);
        }
    }

    /// Describes the faults in one line, with the place of the first one; `None` if there are none.
    pub fn describe_faults(&self) -> Option<String> {
        let Lost { writes, allowed, loaded, .. } = self.lost;
        // Loaded records are older than any bound.
        let emptied = self.lost.window_ns == Some(u64::MAX) && self.lost.oldest.is_some();
        let loaded = if emptied || self.undecidable { 0 } else { loaded };
        if let Some(place) = self.lost.first.first()
            && writes - allowed + loaded > 0
        {
            let count = match (writes - allowed, loaded) {
                (0, records) => format!("{records} loaded records are lost"),
                (lost, _) if allowed > 0 => format!(
                    "{lost} acknowledged writes are lost, and so are {allowed} more, whose loss the guarantee allows"
                ),
                (lost, _) => format!("{lost} acknowledged writes are lost"),
            };
            return Some(format!("{count}: {}", place.describe_loss()));
        }
        if let Some(key) = self.misses.first.first() {
            let failed = self.misses.failed;
            return Some(format!(
                "{failed} reads found nothing although another segment's insert had been acknowledged; the first key is {key}"
            ));
        }
        let wrong = self.fields.corrupt + self.fields.phantom;
        Some(self.first_wrong.as_ref()?.describe_wrong(wrong))
    }

    /// Describes in one line the losses that the guarantee allows; `None` if there are none.
    pub fn describe_allowed_losses(&self) -> Option<String> {
        let Lost { allowed, .. } = self.lost;
        (allowed > 0).then(|| format!("{allowed} acknowledged writes are lost, which the store's guarantee allows"))
    }

    /// States in one line why the read-back proves nothing; `None` if it proves something.
    pub fn describe_missing_proof(&self) -> Option<String> {
        if let Some(proof) = self.proof.as_ref().filter(|proof| !proof.is_proven()) {
            let Proof { corrupted, removed, restored, refused, .. } = proof;
            let refused = refused.as_ref().map_or(String::new(), |status| format!(" (the store answered {status})"));
            return Some(format!(
                "the checker failed its self-test with two planted faults: corrupted value found: {corrupted}; removed \
                 write found: {removed}; both repaired: {restored}{refused}"
            ));
        }
        if self.lost.undecided > 0 {
            return Some(format!(
                "{} acknowledged writes are missing at the strongest readable level, {}, but are not necessarily lost",
                self.lost.undecided,
                self.read.level.as_deref().unwrap_or("the workload's level")
            ));
        }
        if let Some(share) = self.proven.share.filter(|&share| share < PROVEN_MIN) {
            let (acknowledged, other_run) = (self.writes.acknowledged, self.fields.other_run);
            let reason =
                if other_run > 0 { format!("; {other_run} fields hold values of other runs") } else { String::new() };
            return Some(format!(
                "only {:.1} % of {acknowledged} acknowledged writes could be proven, less than {:.0} %{reason}",
                share * 100.0,
                PROVEN_MIN * 100.0
            ));
        }
        if self.writes.acknowledged > 0 && self.proved.is_none() && self.lost.writes == 0 {
            return Some("the checker could not test itself: no record contains an acknowledged write".to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_load::ledger::WriteSpan;

    #[test]
    fn losses_are_attributed_to_the_next_crash() {
        let second = 1_000_000_000;
        let account = |sent: u64, crashes: &[u64]| {
            let mut findings = Findings::default();
            findings.note_guarantee(Some(second));
            let span = WriteSpan { sent: sent * second, done: sent * second + 1 };
            let crashes: Vec<u64> = crashes.iter().map(|crash| crash * second).collect();
            findings.count_outcome(&WriteOutcome { index: 0, span, fate: Fate::Lost, missed: true }, &crashes);
            (findings.lost.writes, findings.lost.allowed, findings.lost.later)
        };
        assert_eq!(account(70, &[70]), (1, 1, 0));
        assert_eq!(account(68, &[70]), (1, 0, 0), "older than the bound");
        assert_eq!(account(71, &[70]), (1, 1, 0), "the kill took effect late");
        assert_eq!(account(100, &[70]), (1, 0, 1), "after the crash");
        assert_eq!(account(130, &[70, 140]), (1, 0, 0), "older than the bound at the second crash");
        assert_eq!(account(139, &[70, 140]), (1, 1, 0));
        assert_eq!(account(100, &[]), (1, 0, 0), "no crash is known");
    }
}
