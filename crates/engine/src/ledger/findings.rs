//! The output of the command `ledger`.

use loadstone_load::RecordWorkload;
use loadstone_load::core::CoreRun;
use loadstone_load::ledger::{Age, Evidence, Finding, Ledger, Loss, Shown, State, Writes};
use loadstone_load::version::Phase;
use serde::Serialize;

use crate::event::Missed;
use crate::mapping::Mapping;

/// How many losses are listed.
const LISTED: usize = 10;

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    writes: WriteCounts,
    ledger: LedgerFacts,
    read: Read,
    found: Found,
    lost: Lost,
    misses: MissCounts,
    /// The first value that no write of the run accounts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_wrong: Option<Place>,
}

/// The writes in the ledger.
#[derive(Debug, Default, Serialize)]
struct WriteCounts {
    acknowledged: u64,
    refused: u64,
    maybe: u64,
    unknown: u64,
}

/// How complete the ledger is.
#[derive(Debug, Default, Serialize)]
struct LedgerFacts {
    /// Whether the engine closed it.
    closed: bool,
    beyond: u64,
    ticks_lost: u64,
    exceptions_lost: u64,
}

#[derive(Debug, Default, Serialize)]
struct Read {
    records: u64,
    fields: u64,
}

/// Fields, by what was found in them.
#[derive(Debug, Default, Serialize)]
struct Found {
    fine: u64,
    overlapped: u64,
    came_true: u64,
    lost: u64,
    phantom: u64,
    corrupt: u64,
    unsure: u64,
}

#[derive(Debug, Default, Serialize)]
struct Lost {
    /// Acknowledged writes that are missing, including overwritten ones.
    writes: u64,
    /// The first few fields.
    first: Vec<Place>,
    /// How long before the crash the oldest of them was done.
    oldest: Option<Oldest>,
}

/// Reads that found nothing where another segment inserts.
#[derive(Debug, Default, Serialize)]
struct MissCounts {
    /// Sent after the insert had been acknowledged: the record should have been there.
    failed: u64,
    /// The insert was in progress, failed, or has an unknown outcome: no conclusion.
    not_yet: u64,
    /// Reads that the events count but do not list.
    unlisted: u64,
    /// The keys of the first few failed ones.
    first: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Place {
    key: String,
    field: String,
    /// The index of the write that should be there; `null`: the loaded value.
    expected: Option<u64>,
    /// The index of the write that is there; `null`: a loaded value, or one that is not ours.
    shown: Option<u64>,
    /// What is there: `write`, `loaded`, `nothing` or `unreadable`.
    what: &'static str,
}

#[derive(Debug, Serialize)]
struct Oldest {
    index: u64,
    at_least_ms: f64,
    at_most_ms: f64,
}

impl Findings {
    /// What the ledgers show without reading the store.
    pub fn of_ledgers(ledgers: &[Ledger<Mapping>], evidence: &Evidence<'_, Mapping>, workload: &CoreRun) -> Self {
        let mut all = Self::default();
        all.ledger.closed = ledgers.iter().all(|ledger| ledger.closed().is_some());
        for ledger in ledgers {
            all.ledger.beyond += ledger.beyond();
            all.ledger.ticks_lost += ledger.ticks_lost();
            all.ledger.exceptions_lost += ledger.exceptions_lost();
        }
        for (index, number) in (0..evidence.end()).filter_map(|number| Some((workload.index(number)?, number))) {
            match evidence.state(index, number) {
                Some(State::Acknowledged) => all.writes.acknowledged += 1,
                Some(State::Refused) => all.writes.refused += 1,
                Some(State::Maybe) => all.writes.maybe += 1,
                Some(State::Unknown) => all.writes.unknown += 1,
                None => {}
            }
        }
        all
    }

    /// Decides the reads that a segment could not judge: `count` in all, of which some are `listed`.
    pub fn settle(
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
                .is_some_and(|number| evidence.acknowledged_before(miss.index, number, miss.sent_unix_ns));
            if !acknowledged {
                self.misses.not_yet += 1;
                continue;
            }
            self.misses.failed += 1;
            if let Some(write) = workload.write(miss.index).filter(|_| self.misses.first.len() < LISTED) {
                self.misses.first.push(key(write.record));
            }
        }
    }

    /// Counts a record that was read.
    pub fn read(&mut self) {
        self.read.records += 1;
    }

    /// Counts what was found in one field. Returns whether it is a loss.
    pub fn add(&mut self, finding: Finding, shown: Shown, key: &[u8], field: &str) -> bool {
        self.read.fields += 1;
        let place = |expected| {
            let (index, what) = match shown {
                Shown::Absent => (None, "nothing"),
                Shown::Unreadable => (None, "unreadable"),
                Shown::Of(version) if version.phase == Phase::Load => (None, "loaded"),
                Shown::Of(version) => (Some(version.index), "write"),
            };
            let key = String::from_utf8_lossy(key).into_owned();
            Place { key, field: field.to_owned(), expected, shown: index, what }
        };
        match finding {
            Finding::Fine => self.found.fine += 1,
            Finding::Overlapped => self.found.overlapped += 1,
            Finding::CameTrue => self.found.came_true += 1,
            Finding::Unsure => self.found.unsure += 1,
            Finding::Lost(expected) => {
                self.found.lost += 1;
                if self.lost.first.len() < LISTED {
                    self.lost.first.push(place(expected));
                }
                return true;
            }
            Finding::Phantom(_) | Finding::Corrupt => {
                *(if finding == Finding::Corrupt { &mut self.found.corrupt } else { &mut self.found.phantom }) += 1;
                self.first_wrong.get_or_insert_with(|| place(None));
            }
        }
        false
    }

    /// Adds the ages of the lost writes, counting each history once. Ages are meaningful only after a crash.
    pub fn age(&mut self, losses: &[Loss], ages: &[Option<Age>], histories: usize, crashed: bool) {
        let mut counted = None;
        for (loss, age) in losses.iter().zip(ages) {
            let history = (loss.record, if histories > 1 { loss.field } else { 0 });
            if counted.replace(history) == Some(history) {
                continue;
            }
            let Some(age) = age else { continue };
            self.lost.writes += age.writes;
            let (least, most) = (age.least_ns as f64 / 1e6, age.most_ns as f64 / 1e6);
            if crashed && self.lost.oldest.as_ref().is_none_or(|oldest| least > oldest.at_least_ms) {
                self.lost.oldest = Some(Oldest { index: age.oldest, at_least_ms: least, at_most_ms: most });
            }
        }
    }

    /// What is wrong, in one line with the first place; `None` if nothing is.
    pub fn bad(&self) -> Option<String> {
        if let Some(Place { key, field, expected, shown, .. }) = self.lost.first.first() {
            let name = |index: &Option<u64>| index.map_or("none of this run".to_owned(), |index| index.to_string());
            let (writes, fields) = (self.lost.writes, self.found.lost);
            let (expected, shown) = (name(expected), name(shown));
            return Some(format!(
                "{writes} acknowledged writes are lost, in {fields} fields: {key} {field} should show write {expected} \
                 or a later one, but shows {shown}"
            ));
        }
        if let Some(key) = self.misses.first.first() {
            let failed = self.misses.failed;
            return Some(format!(
                "{failed} reads found nothing although another segment's insert had been acknowledged; the first key is {key}"
            ));
        }
        let Place { key, field, .. } = self.first_wrong.as_ref()?;
        let wrong = self.found.corrupt + self.found.phantom;
        Some(format!("{wrong} fields hold values that no write of this run made; the first is {key} {field}"))
    }
}
