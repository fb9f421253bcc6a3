//! Checks the limits of the host before threads are started. A process that exceeds them later can only be killed.

use std::fs;

use loadstone_wire::error::EngineError;

/// Memory mappings per client thread: its stack with a guard page, its histograms, and its share of the allocator's
/// arenas.
const MAPPINGS_PER_THREAD: u64 = 8;
/// Address space per client thread in addition to its stack: histograms for four kinds of operation.
const BYTES_PER_THREAD: u64 = 4 * 270_336;

/// Files that the engine opens in addition to its connections, including the files of its executors and its store.
const FILES_BESIDE: u64 = 256;

/// Refuses more connections than this process may open. If necessary, raises the soft limit on open files to the hard
/// limit.
pub fn check_files(connections: u64) -> Result<(), EngineError> {
    let required = connections + FILES_BESIDE;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the struct.
    if connections == 0 || unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Ok(());
    }
    if limit.rlim_cur < required {
        refuse_files(connections, required, limit.rlim_max)?;
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the struct is local.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
    Ok(())
}

fn refuse_files(connections: u64, required: u64, limit: u64) -> Result<(), EngineError> {
    if required <= limit {
        return Ok(());
    }
    Err(EngineError::failed(format!(
        "{connections} connections need {required} open files, but this process may have only {limit}"
    ))
    .hint(format!("ulimit -n {required} (`loadstone doctor` shows how to raise the hard limit)")))
}

/// Refuses more threads than this host supports.
pub fn check_limits(threads: u64, stack_bytes: u64) -> Result<(), EngineError> {
    let mappings = fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
    refuse_mappings(threads, mappings.unwrap_or(u64::MAX))?;
    refuse_bytes(threads, stack_bytes + BYTES_PER_THREAD, address_space())
}

fn refuse_mappings(threads: u64, limit: u64) -> Result<(), EngineError> {
    let required = threads.saturating_mul(MAPPINGS_PER_THREAD);
    if required <= limit {
        return Ok(());
    }
    Err(EngineError::failed(format!("{threads} threads need {required} memory mappings, but this host allows {limit}"))
        .hint(format!("sysctl vm.max_map_count={required}, or use at most {} clients", limit / MAPPINGS_PER_THREAD)))
}

fn refuse_bytes(threads: u64, bytes_per_thread: u64, limit: u64) -> Result<(), EngineError> {
    let required = threads.saturating_mul(bytes_per_thread);
    if required <= limit {
        return Ok(());
    }
    Err(EngineError::failed(format!(
        "{threads} threads need {required} bytes of address space, but the limit is {limit}"
    ))
    .hint(format!("ulimit -v unlimited, or use at most {} clients", limit / bytes_per_thread)))
}

/// The limit of this process's address space, bytes.
fn address_space() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the struct.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_limit_and_its_remedy() {
        assert_eq!(refuse_mappings(8_000, 65_530), Ok(()));
        let error = refuse_mappings(10_000, 65_530).unwrap_err();
        assert_eq!(error.message, "10000 threads need 80000 memory mappings, but this host allows 65530");
        assert_eq!(error.hint.unwrap(), "sysctl vm.max_map_count=80000, or use at most 8191 clients");
        assert_eq!(refuse_bytes(u64::MAX, 1_000, u64::MAX), Ok(()));
        assert_eq!(refuse_files(1_000, 1_256, 1_256), Ok(()));
        let error = refuse_files(10_000, 10_256, 4_096).unwrap_err();
        assert_eq!(error.message, "10000 connections need 10256 open files, but this process may have only 4096");
        assert!(error.hint.unwrap().starts_with("ulimit -n 10256"));
        assert!(refuse_bytes(5_000, 1 << 20, 3 << 30).unwrap_err().hint.unwrap().contains("at most 3072 clients"));
    }
}
