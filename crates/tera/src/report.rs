//! The output of the front ends: progress on a terminal, and one line per stage at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use loadstone_storage::sort::disk::Speed;
use loadstone_storage::sort::job::Stage;
use loadstone_storage::sort::progress::Done;
use loadstone_storage::sort::validate::Verdict;

use crate::args::Args;
use loadstone_kinds::sort::Ended;
use loadstone_measure::usage;
use loadstone_wire::output::print_err;

/// Length of the progress bar in characters.
const BAR: usize = 20;

/// Shows the progress of a stage on stderr, if stderr is a terminal.
pub struct Terminal {
    stage: Stage,
    /// Number of bytes that the stage reads and writes; 0 if unknown.
    total: u64,
    disk: Option<Speed>,
    start: Instant,
    there: bool,
    is_printed: bool,
}

impl Terminal {
    /// Creates a display for a new stage. `total`: the number of bytes that the stage transfers. `disk`: the speed of
    /// the disk without other work, if it was measured.
    pub fn new(stage: Stage, total: impl FnOnce() -> Option<u64>, disk: Option<Speed>) -> Self {
        let there = std::io::stderr().is_terminal();
        // Without a terminal, the input does not need to be listed.
        let total = if there { total().unwrap_or_default() } else { 0 };
        Self { stage, total, disk, start: Instant::now(), there, is_printed: false }
    }

    /// Displays the progress.
    pub fn show_progress(&mut self, done: Done) {
        if !self.there {
            return;
        }
        self.is_printed = true;
        print_err(&format!("\r\x1b[K{}", self.line(done, self.start.elapsed())));
    }

    fn line(&self, done: Done, took: Duration) -> String {
        let (bytes, speed) = (done.read + done.written, megabytes_per_second(done, took));
        let mut line = format!("{}:", self.stage.name());
        if self.total > 0 {
            let share = (bytes as f64 / self.total as f64).min(1.0);
            let full = "#".repeat((share * BAR as f64) as usize);
            let left = self.total.saturating_sub(bytes) as f64 / 1e6 / speed.max(1e-9);
            line += &format!(" [{full:<BAR$}] {:.0} %,", 100.0 * share);
            if bytes > 0 {
                line += &format!(" {left:.0} s left,");
            }
        }
        line += &format!(" {speed:.0} MB/s");
        if let Some(disk) = self.disk {
            line += &format!("; the disk: {:.0} MB/s written, {:.0} MB/s read", disk.write / 1e6, disk.read / 1e6);
        }
        line
    }

    /// Clears the line.
    pub fn clear(&self) {
        if self.is_printed {
            print_err("\r\x1b[K");
        }
    }
}

fn megabytes_per_second(done: Done, took: Duration) -> f64 {
    (done.read + done.written) as f64 / 1e6 / took.as_secs_f64().max(1e-9)
}

/// The results of the stages.
pub struct Report {
    name: &'static str,
    rows: Vec<(Stage, Done, Duration)>,
    start: Instant,
    checksum: Option<String>,
    verdict: Option<Verdict>,
    prepared: bool,
    /// The disk's speed before and after the work.
    disk: Vec<Speed>,
}

impl Report {
    /// A report for a new command.
    pub fn new(args: &Args) -> Self {
        Self {
            name: args.command.name(),
            rows: Vec::new(),
            start: Instant::now(),
            checksum: None,
            verdict: None,
            prepared: false,
            disk: Vec::new(),
        }
    }

    /// Adds a stage.
    pub fn add_stage(&mut self, stage: Stage, ended: &Ended) {
        self.rows.push((stage, ended.done, ended.took));
        if let Ok(outcome) = &ended.outcome {
            self.prepared |= stage == Stage::Prepare;
            self.checksum = outcome.checksum.clone().or(self.checksum.take());
            self.verdict = outcome.verdict.clone().or(self.verdict.take());
        }
    }

    /// Adds the speed of the disk alone.
    pub fn disk(&mut self, speed: Speed) {
        self.disk.push(speed);
    }

    /// Whether this job created its scratch directory. If that failed, an existing directory may belong to another job.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// The result of validation.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// The text of the whole report.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<16}{:>10}{:>14}{:>12}{:>12}{:>10}\n",
            self.name, "seconds", "rows", "read MB", "written MB", "MB/s"
        );
        for (stage, done, took) in &self.rows {
            text += &line(stage.name(), *done, *took);
        }
        let all = self.rows.iter().fold(Done::default(), |all, (_, done, _)| Done {
            rows: all.rows.max(done.rows),
            read: all.read + done.read,
            written: all.written + done.written,
        });
        text += &line("total", all, self.start.elapsed());
        for (speed, when) in self.disk.iter().zip(["before", "after"]) {
            let [write, read] = [speed.write, speed.read].map(|speed| speed / 1e6);
            text += &format!(
                "disk {when:<11}{write:>10.1} MB/s written, {read:.1} MB/s read (O_DIRECT if the file system can)\n"
            );
        }
        let [user, system] = usage::cpu_ns().map(|ns| ns as f64 / 1e9);
        text += &format!("cpu             {:>10.3} s ({user:.3} user, {system:.3} system)\n", user + system);
        text += &format!("memory          {:>10.1} MB at the peak\n", usage::memory_max() as f64 / 1e6);
        if let Some(verdict) = &self.verdict {
            text += &format!("duplicate keys  {:>10}\n", verdict.duplicates);
        }
        if let Some(checksum) = &self.checksum {
            text += &format!("checksum\t{checksum}\n");
        }
        text
    }
}

fn line(name: &str, done: Done, took: Duration) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "{name:<16}{:>10.3}{:>14}{:>12.1}{:>12.1}{:>10.1}\n",
        took.as_secs_f64(),
        done.rows,
        megabytes(done.read),
        megabytes(done.written),
        megabytes_per_second(done, took)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(total: u64, disk: Option<Speed>, done: Done) -> String {
        Terminal { total, ..Terminal::new(Stage::Sort, || None, disk) }.line(done, Duration::from_secs(2))
    }

    #[test]
    fn progress_bar_compares_speed_with_the_disks() {
        let done = Done { rows: 5, read: 300_000_000, written: 200_000_000 };
        let disk = Some(Speed { write: 400e6, read: 500e6 });
        assert_eq!(
            line(2_000_000_000, disk, done),
            "sort: [#####               ] 25 %, 6 s left, 250 MB/s; the disk: 400 MB/s written, 500 MB/s read"
        );
        assert_eq!(line(0, None, done), "sort: 250 MB/s");
        // Direct I/O reads whole blocks, which is slightly more than the rows.
        assert!(line(499_000_000, None, done).starts_with("sort: [####################] 100 %, 0 s left"));
        assert_eq!(line(1_000, None, Done::default()), "sort: [                    ] 0 %, 0 MB/s");
    }
}
