//! `loadstone-engine merge` reads the events of several segments and prints the events of the whole trial.

use std::io::BufRead;

use loadstone_wire::error::EngineError;
use loadstone_wire::event::Event;
use loadstone_wire::merge_events::Merger;
use loadstone_wire::output::print_out;

const USAGE: &str = "\
usage: loadstone-engine merge SEGMENTS

Each line of stdin is a segment's number, a tab, and an event of its engine, or the word `lost` if the segment ended without a
result that counts. For each line, prints the events of the whole trial that the line completes, and an empty line. At the end
of stdin, prints the notes and the summary.
";

/// Runs the command. Returns the exit code.
pub fn main(arguments: &[String]) -> Result<u8, EngineError> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print_out(USAGE);
        return Ok(0);
    }
    let refused = |message: String| EngineError::usage(message).hint("see loadstone-engine merge --help");
    let [segments] = arguments else { return Err(refused("merge takes the number of segments".to_owned())) };
    let segments = segments.parse().ok().filter(|&segments: &usize| segments > 0);
    let segments = segments.ok_or_else(|| refused(format!("SEGMENTS must be at least 1, got {:?}", arguments[0])))?;
    let mut merger = Merger::new(segments);
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| EngineError::failed(format!("cannot read stdin: {error}")))?;
        let (segment, event) = line.split_once('\t').ok_or_else(|| refused(format!("a line without a tab: {line}")))?;
        let segment = segment.parse().ok().filter(|&segment: &usize| segment < segments);
        let segment = segment.ok_or_else(|| refused(format!("a line for segment {segments} or above: {line}")))?;
        let complete = match event {
            "lost" => merger.lose_segment(segment)?,
            event => {
                let event = serde_json::from_str::<Event>(event)
                    .map_err(|error| refused(format!("segment {segment} wrote an unreadable event: {error}")))?;
                merger.accept_event(segment, event)?
            }
        };
        print_events(&complete)?;
        // An empty line marks the end of the answer.
        print_out("\n");
    }
    print_events(&merger.finish_merge()?)?;
    Ok(0)
}

fn print_events(events: &[Event]) -> Result<(), EngineError> {
    for event in events {
        let line = serde_json::to_string(event).map_err(|error| EngineError::failed(error.to_string()))?;
        print_out(&format!("{line}\n"));
    }
    Ok(())
}
