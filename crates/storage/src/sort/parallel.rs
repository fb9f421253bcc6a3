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
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = memories.into_iter().map(|memory| scope.spawn(move || work(memory))).collect();
        let mut all = Ok(Checksum::default());
        for thread in threads {
            let own = thread.join().unwrap_or_else(|_| Err(SortError::new("internal error: a thread panicked")));
            all = all.and_then(|mut all| {
                all += own?;
                Ok(all)
            });
        }
        all
    })
}
