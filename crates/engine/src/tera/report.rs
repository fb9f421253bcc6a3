//! What the front ends show: progress on a terminal, and a line for each stage at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use loadstone_storage::sort::disk::Speed;
use loadstone_storage::sort::job::Stage;
use loadstone_storage::sort::progress::Done;
use loadstone_storage::sort::validate::Verdict;

use crate::output::err;
use crate::sort::Ended;
use crate::tera::args::Args;
use crate::usage;

/// Progress of a stage on stderr, if that is a terminal.
pub struct Terminal {
    stage: Stage,
    start: Instant,
    shown: bool,
}

impl Terminal {
    /// For a stage that begins.
    pub fn new(stage: Stage) -> Self {
        Self { stage, start: Instant::now(), shown: false }
    }

    /// Shows how far it is.
    pub fn show(&mut self, done: Done) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        self.shown = true;
        let speed = megabytes_per_second(done, self.start.elapsed());
        err(&format!("\r\x1b[K{}: {} rows, {speed:.0} MB/s", self.stage.name(), done.rows));
    }

    /// Clears the line.
    pub fn clear(&self) {
        if self.shown {
            err("\r\x1b[K");
        }
    }
}

fn megabytes_per_second(done: Done, took: Duration) -> f64 {
    (done.read + done.written) as f64 / 1e6 / took.as_secs_f64().max(1e-9)
}

/// What the stages did.
pub struct Report {
    name: &'static str,
    rows: Vec<(Stage, Done, Duration)>,
    start: Instant,
    checksum: Option<String>,
    verdict: Option<Verdict>,
    prepared: bool,
    /// Before the work and after it.
    disk: Vec<Speed>,
}

impl Report {
    /// For a command that begins.
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
    pub fn add(&mut self, stage: Stage, ended: &Ended) {
        self.rows.push((stage, ended.done, ended.took));
        if let Ok(outcome) = &ended.outcome {
            self.prepared |= stage == Stage::Prepare;
            self.checksum = outcome.checksum.clone().or(self.checksum.take());
            self.verdict = outcome.verdict.clone().or(self.verdict.take());
        }
    }

    /// Adds the disk's own speed.
    pub fn disk(&mut self, speed: Speed) {
        self.disk.push(speed);
    }

    /// Whether there is a scratch directory of ours. If its preparation failed, there may be another job's.
    pub fn prepared(&self) -> bool {
        self.prepared
    }

    /// What validation found.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// All of it.
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
