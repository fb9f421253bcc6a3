//! Processes many items with a few threads.

use std::sync::Mutex;

use crate::sort::SortError;
use crate::sort::checksum::Checksum;

/// Processes each item, with one thread per element of `memories`. Returns the sum of the checksums.
pub fn process_in_parallel<M: Send>(
    items: &[usize],
    memories: Vec<M>,
    work: impl Fn(usize, M) -> Result<(Checksum, M), SortError> + Sync,
) -> Result<Checksum, SortError> {
    let next = Mutex::new(items.iter());
    let work = |mut memory: M| {
        let mut all = Checksum::default();
        loop {
            let item = next.lock().map_or(None, |mut next| next.next().copied());
            let Some(item) = item else { return Ok(all) };
            let (sum, back) = work(item, memory)?;
            all += sum;
            memory = back;
        }
    };
    let sums = run_threads(memories, "internal error: a thread panicked", work)?;
    Ok(sums.into_iter().sum())
}

/// Runs `work` in one thread per input, and waits for all of them. Returns their results in order, or the first error;
/// the error of a thread that panicked has the message `panicked`.
pub fn run_threads<I: Send, T: Send>(
    inputs: impl IntoIterator<Item = I>,
    panicked: &str,
    work: impl Fn(I) -> Result<T, SortError> + Sync,
) -> Result<Vec<T>, SortError> {
    let work = &work;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = inputs.into_iter().map(|input| scope.spawn(move || work(input))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(SortError::new(panicked)))).collect()
    });
    results.into_iter().collect()
}
