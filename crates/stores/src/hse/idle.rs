//! Detects whether HSE is working in the background.
//!
//! HSE's API has no call for this: compactions can be requested, but there is no way to wait for automatic compactions.
//! However, the threads that do the work have names, and the kernel counts the CPU time and the bytes written for each
//! thread.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Prefixes of thread names: in HSE 3.0, of all its threads; in 2.1, of the threads that ingest, compact and journal.
const THREADS: [&str; 8] = ["hse_", "c0sk_", "cn_", "sts_", "kc_", "kv_", "sp_", "wal_"];
/// Interval between two samples.
const INTERVAL: Duration = Duration::from_millis(250);
/// Number of consecutive samples without activity after which HSE counts as idle. The samples cover a second, which is
/// longer than the intervals of HSE's timers.
const IDLE_SAMPLES: usize = 4;
/// Maximum share of one processor when HSE is idle. HSE's clocks and monitors take 2 % in 3.0 and 4 % in 2.1.
const CPU_SHARE_IDLE: f64 = 0.10;
/// Number of bytes written per sample below which HSE counts as idle. An idle HSE writes nothing.
const WRITTEN_BYTES_IDLE: u64 = 64 << 10;

/// The work that a thread has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadWork {
    cpu_ns: u64,
    written_bytes: u64,
}

/// Waits until HSE is idle; returns `false` if it is still busy after `max`.
pub fn wait_for_idle(max: Duration) -> bool {
    let start = Instant::now();
    let (mut before, mut at) = (read_threads(), Instant::now());
    let mut idle = 0;
    while !before.is_empty() && start.elapsed() < max {
        std::thread::sleep(INTERVAL);
        let (now, seconds) = (read_threads(), at.elapsed().as_secs_f64());
        idle = if is_idle(work_since(&before, &now), seconds) { idle + 1 } else { 0 };
        if idle == IDLE_SAMPLES {
            return true;
        }
        (before, at) = (now, Instant::now());
    }
    before.is_empty()
}

fn is_idle(work: ThreadWork, seconds: f64) -> bool {
    (work.cpu_ns as f64) < CPU_SHARE_IDLE * seconds * 1e9 && work.written_bytes < WRITTEN_BYTES_IDLE
}

/// The work done between two samples. Threads start and end, and the counts of threads that have ended are lost.
fn work_since(before: &HashMap<u32, ThreadWork>, now: &HashMap<u32, ThreadWork>) -> ThreadWork {
    now.iter().fold(ThreadWork::default(), |sum, (thread, work)| {
        let old = before.get(thread).copied().unwrap_or_default();
        ThreadWork {
            cpu_ns: sum.cpu_ns + work.cpu_ns.saturating_sub(old.cpu_ns),
            written_bytes: sum.written_bytes + work.written_bytes.saturating_sub(old.written_bytes),
        }
    })
}

fn read_threads() -> HashMap<u32, ThreadWork> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return HashMap::new();
    };
    threads
        .flatten()
        .filter_map(|entry| {
            let file = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let name = file("comm");
            if !THREADS.iter().any(|start| name.starts_with(start)) {
                return None;
            }
            let thread = entry.file_name().to_str()?.parse().ok()?;
            Some((
                thread,
                ThreadWork { cpu_ns: cpu_ns(&file("schedstat")), written_bytes: parse_written_bytes(&file("io")) },
            ))
        })
        .collect()
}

/// Parses proc(5)'s `schedstat`: time on a processor, time spent waiting for a processor, number of time slices.
fn cpu_ns(schedstat: &str) -> u64 {
    schedstat.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Parses `wchar` in proc(5)'s `io`, because `write_bytes` stays 0 on tmpfs.
fn parse_written_bytes(io: &str) -> u64 {
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(cpu_ms: u64, written_kib: u64) -> ThreadWork {
        ThreadWork { cpu_ns: cpu_ms * 1_000_000, written_bytes: written_kib << 10 }
    }

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(cpu_ns("1494586221 812 33\n"), 1_494_586_221);
        assert_eq!(parse_written_bytes("rchar: 5\nwchar: 2665\nwrite_bytes: 4096\n"), 2_665);
        assert_eq!((cpu_ns(""), parse_written_bytes("")), (0, 0));
    }

    #[test]
    fn ended_threads_do_not_count() {
        let before = HashMap::from([(1, work(10, 1)), (2, work(500, 900))]);
        let now = HashMap::from([(1, work(14, 1)), (3, work(2, 8))]);
        assert_eq!(work_since(&before, &now), work(6, 8));
    }

    #[test]
    fn compaction_is_work_and_the_clock_is_not() {
        assert!(is_idle(work(7, 0), 0.25));
        assert!(!is_idle(work(120, 0), 0.25));
        assert!(!is_idle(work(7, 1_024), 0.25));
    }

    #[test]
    fn a_process_without_hse_is_idle_at_once() {
        assert!(wait_for_idle(Duration::ZERO));
    }
}
