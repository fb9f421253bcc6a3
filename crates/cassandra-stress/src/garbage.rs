//! The servers' garbage collections, read from the logs of the nodes that Loadstone started on this host.
//!
//! The tool reads collections over JMX. Loadstone starts its nodes with `-Xlog:gc`, and the lab counts the pauses in
//! these logs (`read_collections` in `systems/base/jvm.py`). This module counts the same lines.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use loadstone_stores::cassandra::Description;
use loadstone_stress::output::Garbage;

/// The environment variable in which `loadstone` names the logs: a JSON object that maps `address:port` to a path.
const VARIABLE: &str = "LOADSTONE_GC_LOGS";
/// Maximum length of a log's first line, bytes.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// The collectors that log the length of every pause. At the level of `-Xlog:gc`, ZGC logs cycles but no pauses.
const COLLECTORS: [&str; 4] = ["G1", "Parallel", "Serial", "Concurrent Mark Sweep"];

/// The totals of several pauses.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    count: u64,
    max_ns: u64,
    sum_ns: u64,
    /// The sum of the squared lengths, ms².
    squares: f64,
    /// Freed heap, MiB; logs state whole MiB.
    freed_mib: u64,
}

impl Pauses {
    fn add_pause(&mut self, pause_ns: u64, freed_mib: u64) {
        let ms = pause_ns as f64 / 1e6;
        self.merge_pauses(Self { count: 1, max_ns: pause_ns, sum_ns: pause_ns, squares: ms * ms, freed_mib });
    }

    fn merge_pauses(&mut self, more: Self) {
        self.count += more.count;
        self.max_ns = self.max_ns.max(more.max_ns);
        self.sum_ns += more.sum_ns;
        self.squares += more.squares;
        self.freed_mib += more.freed_mib;
    }

    /// Converts the totals to the values of the printed columns. The maximum is the longest single pause, whereas the
    /// tool prints the sum of the nodes' maxima.
    fn to_garbage(self) -> Garbage {
        let (count, sum_ms) = (self.count as f64, self.sum_ns as f64 / 1e6);
        let variance = if self.count > 0 { self.squares / count - (sum_ms / count).powi(2) } else { 0.0 };
        Garbage {
            count,
            max_ms: self.max_ns as f64 / 1e6,
            sum_ms,
            deviation_ms: variance.max(0.0).sqrt(),
            bytes: self.freed_mib as f64 * f64::from(1 << 20),
        }
    }
}

/// The log of one node.
#[derive(Debug)]
struct GcLog {
    path: PathBuf,
    /// The first line, which contains the time at which the JVM started. A restarted JVM truncates its log.
    head: Vec<u8>,
    /// End of the last line that was read.
    offset: u64,
}

impl GcLog {
    /// Opens a log and moves to its end. The error states why the log's pauses cannot be counted.
    fn open_log(path: &str) -> Result<Self, String> {
        let mut start = vec![0; LINE_BYTES_MAX];
        let path = PathBuf::from(path);
        let (mut file, _) = open_file(&path)?;
        let length = read_up_to(&mut file, &mut start).map_err(|error| describe_error(&path, &error))?;
        let end = start[..length].iter().position(|byte| *byte == b'\n').unwrap_or(0);
        start.truncate(end);
        let line = String::from_utf8_lossy(&start);
        let collector = line.rsplit_once("] Using ").map(|(_, collector)| collector.trim_end());
        let Some(collector) = collector else {
            return Err(format!("{} is not a log of -Xlog:gc", path.display()));
        };
        if !COLLECTORS.contains(&collector) {
            return Err(format!("the log of the collector {collector} has no pauses ({})", path.display()));
        }
        let mut log = Self { head: start, path, offset: 0 };
        log.read_new().map(|_| log)
    }

    /// Reads the lines that were completed since the last call, and returns their pauses.
    fn read_new(&mut self) -> Result<Pauses, String> {
        let (mut file, length) = open_file(&self.path)?;
        let mut pauses = Pauses::default();
        let mut read = || -> std::io::Result<bool> {
            let mut head = vec![0; self.head.len()];
            if read_up_to(&mut file, &mut head)? < head.len() || head != self.head || length < self.offset {
                return Ok(false);
            }
            let mut buffer = vec![0; CHUNK_BYTES.min((length - self.offset) as usize)];
            while self.offset < length {
                file.seek(SeekFrom::Start(self.offset))?;
                let count = read_up_to(&mut file, &mut buffer)?;
                let Some(end) = buffer[..count].iter().rposition(|byte| *byte == b'\n') else {
                    if count < CHUNK_BYTES {
                        break;
                    }
                    return Err(std::io::Error::other("a line is too long for a log of -Xlog:gc"));
                };
                let lines = buffer[..end].split(|byte| *byte == b'\n');
                lines.filter_map(parse_pause).for_each(|(pause_ns, freed_mib)| pauses.add_pause(pause_ns, freed_mib));
                self.offset += end as u64 + 1;
            }
            Ok(true)
        };
        match read() {
            Ok(true) => Ok(pauses),
            Ok(false) => Err(format!("{} began again, as after a restart of its node", self.path.display())),
            Err(error) => Err(describe_error(&self.path, &error)),
        }
    }
}

fn describe_error(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

/// Opens a regular file, and returns its length. Other types of files are refused, because opening a pipe would wait
/// for a writer.
fn open_file(path: &Path) -> Result<(File, u64), String> {
    let metadata = std::fs::metadata(path).map_err(|error| describe_error(path, &error))?;
    if !metadata.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let file = File::open(path).map_err(|error| describe_error(path, &error))?;
    Ok((file, metadata.len()))
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// Parses the length of a pause in ns and the freed memory in MiB; `None` for any other line. Lines tagged `gc,start`
/// have no length. Example: `[1.2s][info][gc] GC(7) Pause Young (Normal) (G1 Evacuation Pause) 24M->1M(64M) 0.998ms`.
fn parse_pause(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
    let (_, entry) = line.split_once("] GC(")?;
    let (number, entry) = entry.split_once(") Pause ")?;
    let (entry, time) = entry.rsplit_once(' ')?;
    let (whole, thousandths) = time.strip_suffix("ms")?.split_once('.')?;
    if !is_number(number) || !is_number(whole) || !is_number(thousandths) || thousandths.len() != 3 {
        return None;
    }
    let (ms, us): (u64, u64) = (whole.parse().ok()?, thousandths.parse().ok()?);
    let heap = entry.rsplit(' ').next().and_then(|heap| heap.split_once("M->"));
    let freed_mib = heap.and_then(|(before, after)| {
        let after: u64 = after.split_once('M')?.0.parse().ok()?;
        Some(before.parse::<u64>().ok()?.saturating_sub(after))
    });
    Some((ms.checked_mul(1_000_000)? + us * 1_000, freed_mib.unwrap_or(0)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The collections of all nodes of a cluster. They are known for all nodes or for none.
#[derive(Debug)]
pub struct ClusterCollections {
    /// The logs of the nodes, or the reason why collections are unknown.
    logs: Result<Vec<GcLog>, String>,
    total: Pauses,
}

impl ClusterCollections {
    /// Opens the logs that the environment names for the nodes of a cluster.
    pub fn open_logs(cluster: &Description) -> Self {
        let named = std::env::var(VARIABLE).ok();
        let paths = named.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Self::from_paths(cluster.nodes.iter().map(|node| node.address.to_string()), &paths)
    }

    fn from_paths(addresses: impl Iterator<Item = String>, paths: &HashMap<String, String>) -> Self {
        let logs = addresses.map(|address| match paths.get(&address) {
            Some(path) => GcLog::open_log(path),
            None => Err(format!("Loadstone runs no node at {address} on this host")),
        });
        Self { logs: logs.collect(), total: Pauses::default() }
    }

    /// Begins a run: earlier collections do not count.
    pub fn begin_interval(&mut self) {
        self.read_interval();
        self.total = Pauses::default();
    }

    /// The collections since the last call.
    pub fn read_interval(&mut self) -> Garbage {
        let Ok(logs) = &mut self.logs else { return Garbage::default() };
        let mut new = Pauses::default();
        for log in logs {
            match log.read_new() {
                Ok(pauses) => new.merge_pauses(pauses),
                Err(reason) => {
                    self.logs = Err(reason);
                    return Garbage::default();
                }
            }
        }
        self.total.merge_pauses(new);
        new.to_garbage()
    }

    /// The collections of the run.
    pub fn total(&self) -> Garbage {
        if self.logs.is_ok() { self.total.to_garbage() } else { Garbage::default() }
    }

    /// A note that states why collections are unknown; `None` if they are known.
    pub fn describe_unknown(&self) -> Option<String> {
        const HINT: &str = "start all nodes with `loadstone systems up`, and let them run";
        let reason = self.logs.as_ref().err()?;
        Some(format!("note: gc-unknown: the results have no garbage collections, because {reason} ({HINT})\n"))
    }
}

#[cfg(test)]
mod tests;
