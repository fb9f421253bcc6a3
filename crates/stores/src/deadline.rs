//! Time limits of a networked session, which ensure that every wait ends. An operation that reaches its limit counts as
//! `TIMEOUT`.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A time limit for consecutive waits.
///
/// Setting and cancelling a timer for each wait would cost more than the other bookkeeping of an operation. This timer
/// fires once per limit, and only then computes how long the current wait may still take.
#[derive(Debug)]
pub struct Deadline {
    limit: Duration,
    bell: Option<Pin<Box<Sleep>>>,
}

/// The limit was reached before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late(pub Duration);

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {} ms", self.0.as_millis())
    }
}

impl Deadline {
    /// Sets the same limit for each wait.
    pub fn new(limit: Duration) -> Self {
        Self { limit, bell: None }
    }

    /// Waits for `future`, but no longer than the limit. Must be called within a runtime.
    pub async fn keep_deadline<F: Future>(&mut self, future: F) -> Result<F::Output, Late> {
        let mut future = pin!(future);
        let end = Instant::now() + self.limit;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            self.poll_end(end, context).map(|()| Err(Late(self.limit)))
        })
        .await
    }

    fn poll_end(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let bell = self.bell.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(bell.as_mut().poll(context));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            bell.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::time::sleep;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn deadline_ends_only_late_futures() {
        run(async {
            let limit = Duration::from_millis(60);
            let mut deadline = Deadline::new(limit);
            assert_eq!(deadline.keep_deadline(ready(7)).await, Ok(7));
            // The limit applies to each wait separately: the total of these waits exceeds it.
            for _ in 0..4 {
                assert_eq!(deadline.keep_deadline(sleep(limit / 3)).await, Ok(()));
            }
            for _ in 0..2 {
                let began = Instant::now();
                assert_eq!(deadline.keep_deadline(pending::<()>()).await, Err(Late(limit)));
                assert!(began.elapsed() >= limit);
                assert_eq!(deadline.keep_deadline(ready(8)).await, Ok(8), "it still works");
            }
            assert_eq!(Late(limit).to_string(), "no answer within 60 ms");
        });
    }
}
