//! Merges the events from a trial's segments into the events of the whole trial.
//!
//! Segments begin at the same instant and have intervals of the same length, so intervals with the same number are
//! simultaneous. Counts and histograms are added exactly.

use std::collections::BTreeMap;

use crate::error::EngineError;
use crate::event::{Event, Interval, Note, Outcome, Ready, Summary};
use crate::histogram::Sum;
use crate::merge_rule::{Merge, add_known};

/// Adds encoded histograms; `None` if there are none.
pub fn add_histograms<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<Option<String>, EngineError> {
    let mut sum = Sum::default();
    texts.into_iter().try_for_each(|text| sum.add(text))?;
    Ok(sum.encode())
}

/// Merges the outcomes of all segments by operation and status.
pub fn add_outcomes(outcomes: Vec<Outcome>) -> Result<Vec<Outcome>, EngineError> {
    let mut groups: BTreeMap<(String, String), Vec<Outcome>> = BTreeMap::new();
    let mut order = Vec::new();
    for outcome in outcomes {
        let key = (outcome.operation.clone(), outcome.status.clone());
        let group = groups.entry(key.clone()).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(outcome);
    }
    order
        .into_iter()
        .filter_map(|key| groups.remove(&key))
        .map(|mut group| {
            if group.len() == 1 {
                return Ok(group.remove(0));
            }
            let service = add_histograms(group.iter().map(|outcome| &outcome.service))?.unwrap_or_default();
            let response = add_histograms(group.iter().filter_map(|outcome| outcome.response.as_ref()))?;
            let response_lower = add_histograms(group.iter().filter_map(|outcome| outcome.response_lower.as_ref()))?;
            let sum = |of: fn(&Outcome) -> Option<u64>| group.iter().map(of).reduce(add_known).flatten();
            Ok(Outcome {
                count: group.iter().map(|outcome| outcome.count).sum(),
                service,
                response,
                response_lower,
                service_ns_sum: sum(|outcome| outcome.service_ns_sum),
                response_ns_sum: sum(|outcome| outcome.response_ns_sum),
                operation: group[0].operation.clone(),
                status: group[0].status.clone(),
            })
        })
        .collect()
}

/// Merges the events of all segments as they arrive.
#[derive(Debug)]
pub struct Merger {
    segments: usize,
    ready: Vec<Ready>,
    notes: Vec<Note>,
    /// Incomplete intervals by number.
    intervals: BTreeMap<u64, Vec<Interval>>,
    summaries: BTreeMap<usize, Summary>,
    /// The number of the newest interval of each running segment, plus 1.
    newest: BTreeMap<usize, u64>,
}

impl Merger {
    /// A merger for the given number of segments.
    pub fn new(segments: usize) -> Self {
        Self {
            segments,
            ready: Vec::new(),
            notes: Vec::new(),
            intervals: BTreeMap::new(),
            summaries: BTreeMap::new(),
            newest: (0..segments).map(|segment| (segment, 0)).collect(),
        }
    }

    /// Takes an event from a segment. Returns the whole trial's events that this event completes: `ready`, and
    /// intervals in order.
    pub fn accept_event(&mut self, segment: usize, event: Event) -> Result<Vec<Event>, EngineError> {
        let mut complete = Vec::new();
        match event {
            Event::Ready(ready) => {
                self.ready.push(ready);
                if self.ready.len() == self.segments {
                    complete.extend(merge_all(std::mem::take(&mut self.ready)).map(Event::Ready));
                }
            }
            Event::Note(note) => {
                let message = match self.segments {
                    1 => note.message,
                    all => format!("segment {segment}/{all}: {}", note.message),
                };
                self.notes.push(Note { message, ..note });
            }
            Event::Interval(interval) => {
                if let Some(newest) = self.newest.get_mut(&segment) {
                    *newest = interval.k + 1;
                }
                self.intervals.entry(interval.k).or_default().push(interval);
            }
            Event::Summary(summary) => {
                self.newest.remove(&segment);
                self.summaries.insert(segment, *summary);
            }
        }
        self.complete_intervals(&mut complete)?;
        Ok(complete)
    }

    /// Removes a segment that failed, with its summary if it sent one. Returns the intervals that are now complete.
    pub fn lose_segment(&mut self, segment: usize) -> Result<Vec<Event>, EngineError> {
        self.newest.remove(&segment);
        self.summaries.remove(&segment);
        let mut complete = Vec::new();
        self.complete_intervals(&mut complete)?;
        Ok(complete)
    }

    /// An interval is complete once every running segment has reported this interval or a later one.
    fn complete_intervals(&mut self, complete: &mut Vec<Event>) -> Result<(), EngineError> {
        let until = self.newest.values().min().copied().unwrap_or(u64::MAX);
        while let Some(entry) = self.intervals.first_entry().filter(|entry| *entry.key() < until) {
            let mut parts = entry.remove();
            // A segment that ended within the interval reported a shorter interval.
            parts.sort_by_key(|part| std::cmp::Reverse(part.length_ns));
            if let Some(mut whole) = merge_all(parts) {
                whole.additions.outcomes = add_outcomes(std::mem::take(&mut whole.additions.outcomes))?;
                for earlier in &mut whole.earlier {
                    earlier.additions.outcomes = add_outcomes(std::mem::take(&mut earlier.additions.outcomes))?;
                }
                complete.push(Event::Interval(whole));
            }
        }
        Ok(())
    }

    /// Returns the notes and the summary, after the last segment has ended. Fails if no segment has a result.
    pub fn finish_merge(self) -> Result<Vec<Event>, EngineError> {
        let mut summaries: Vec<Summary> = self.summaries.into_values().collect();
        // The whole trial ends as its worst segment did.
        summaries.sort_by_key(|summary| ENDS.iter().position(|end| *end == summary.end).unwrap_or(0));
        let wait_client = add_histograms(summaries.iter().filter_map(|summary| summary.wait_client.as_ref()))?;
        let wait_generator = add_histograms(summaries.iter().filter_map(|summary| summary.wait_generator.as_ref()))?;
        let Some(mut whole) = merge_all(summaries) else {
            return Err(EngineError::failed("no segment has a result").hint("see the messages of the load generators"));
        };
        whole.outcomes = add_outcomes(std::mem::take(&mut whole.outcomes))?;
        (whole.wait_client, whole.wait_generator) = (wait_client, wait_generator);
        let notes = self.notes.into_iter().map(Event::Note);
        Ok(notes.chain([Event::Summary(Box::new(whole))]).collect())
    }
}

/// The ways in which a trial can end, the worst first.
const ENDS: [&str; 4] = ["failed", "lease", "stopped", "done"];

fn merge_all<T: Merge>(parts: Vec<T>) -> Option<T> {
    parts.into_iter().reduce(|mut whole, part| {
        whole.merge(part);
        whole
    })
}

#[cfg(test)]
mod tests {
    use loadstone_load::histogram::Reading;

    use super::*;
    use crate::event::{Additions, Earlier, encode};

    /// Outcomes of operations with the given latencies, ns.
    fn outcome(status: &str, values: impl IntoIterator<Item = u64>) -> Outcome {
        let mut reading = Reading::default();
        values.into_iter().for_each(|value| reading.record_value(value));
        Outcome {
            operation: "READ".to_owned(),
            status: status.to_owned(),
            count: reading.count(),
            service: encode(&reading),
            response: None,
            response_lower: None,
            service_ns_sum: u64::try_from(reading.sum()).ok(),
            response_ns_sum: None,
        }
    }

    fn interval(k: u64, length_ns: u64, outcomes: Vec<Outcome>) -> Event {
        let additions = Additions { good: 2, outcomes, ..Additions::default() };
        let earlier = vec![Earlier { k: 0, additions: additions.clone() }];
        Event::Interval(Interval { k, length_ns, due: Some(3), additions, earlier, ..Interval::default() })
    }

    #[test]
    fn segments_add_up_to_the_whole() {
        let mut merger = Merger::new(2);
        assert!(merger.accept_event(0, interval(0, 9, vec![outcome("OK", [1, 500])])).unwrap().is_empty());
        assert!(merger.accept_event(0, interval(1, 9, Vec::new())).unwrap().is_empty(), "segment 1 has reported none");
        let complete =
            merger.accept_event(1, interval(0, 10, vec![outcome("OK", [70_000]), outcome("ERROR", [5])])).unwrap();
        let [Event::Interval(whole)] = &complete[..] else { panic!("{complete:?}") };
        assert_eq!((whole.k, whole.length_ns, whole.due, whole.additions.good), (0, 10, Some(6), 4));
        assert_eq!(whole.additions.outcomes, [outcome("OK", [1, 500, 70_000]), outcome("ERROR", [5])]);
        assert_eq!(whole.earlier.len(), 1, "additions to the same interval are merged");
        let complete = merger.lose_segment(1).unwrap();
        assert!(matches!(&complete[..], [Event::Interval(last)] if last.k == 1), "a lost segment is not awaited");
        assert_eq!(merger.finish_merge().unwrap_err().exit(), 1);
    }

    #[test]
    fn whole_ends_as_its_worst_segment() {
        let summary = |end: &str, outcomes| {
            let sums = Summary { operations: 5, measured_ns: 7, due: Some(4), outcomes, ..Summary::default() };
            Event::Summary(Box::new(Summary { end: end.to_owned(), ..sums }))
        };
        let mut merger = Merger::new(2);
        merger.accept_event(0, summary("done", vec![outcome("OK", [3])])).unwrap();
        let note = Note { name: "slow".to_owned(), message: "why".to_owned(), hint: String::new() };
        merger.accept_event(1, Event::Note(note)).unwrap();
        merger.accept_event(1, summary("lease", vec![outcome("OK", [4])])).unwrap();
        let events = merger.finish_merge().unwrap();
        let [Event::Note(note), Event::Summary(whole)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(note.message, "segment 1/2: why");
        assert_eq!((whole.end.as_str(), whole.operations, whole.measured_ns, whole.due), ("lease", 10, 7, Some(8)));
        assert_eq!(whole.outcomes, [outcome("OK", [3, 4])]);
    }

    #[test]
    fn damaged_histogram_is_refused() {
        let damaged = Outcome { service: "no histogram".to_owned(), ..outcome("OK", [1]) };
        assert!(add_outcomes(vec![outcome("OK", [1]), damaged]).is_err());
    }
}
