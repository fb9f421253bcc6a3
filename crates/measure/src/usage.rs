//! The resources that the engine uses: CPU, memory and device bytes.

use std::fs;

/// CPU time of this process so far, ns: user time, then system time.
pub fn cpu_ns() -> [u64; 2] {
    let usage = rusage();
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    [ns(usage.ru_utime), ns(usage.ru_stime)]
}

/// The difference of two pairs of counts.
pub fn subtract_times(later: [u64; 2], earlier: [u64; 2]) -> [u64; 2] {
    [later[0].saturating_sub(earlier[0]), later[1].saturating_sub(earlier[1])]
}

/// Peak resident memory of this program, bytes.
///
/// This is not `ru_maxrss`, which survives exec(2) and may be the value of the process that started the engine
/// (`exec_mmap` in Linux's fs/exec.c).
pub fn memory_max() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    peak.unwrap_or_else(|| rusage().ru_maxrss as u64) * 1_024
}

fn rusage() -> libc::rusage {
    // SAFETY: the kernel fills the struct, and all zeros are a valid value.
    unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

/// Current resident memory of this process, bytes; 0 if it cannot be read from /proc.
pub fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').nth(1)?.parse().ok());
    // SAFETY: sysconf takes no pointer.
    pages.unwrap_or(0u64) * unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(0) as u64
}

/// Number of bytes that this process has caused to be read from devices, and number of bytes in pages that it dirtied
/// or wrote with direct I/O (`/proc/self/io`).
pub fn device_bytes() -> [u64; 2] {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let value = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    [value("read_bytes:"), value("write_bytes:")]
}

/// Memory that this process could still allocate without swapping, bytes: the smaller of the values for the host and
/// for the control group.
pub fn memory_free() -> u64 {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let facts = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = facts.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let host =
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() * 1_024;
    // Considers only the group that a container sees as its root. "max" cannot be parsed and means that there is no
    // limit.
    let group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or_default()));
    group.map_or(host, |group| group.min(host))
}
