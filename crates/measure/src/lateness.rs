//! The lateness of an operation, and its cause: either busy clients or the generator.

use crate::pulse::Pulse;

/// The wait of an operation from its due time until it is sent, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Wait while the client was busy, unless it was busy with operations that the generator had delayed.
    pub client: u64,
    /// Wait because the generator was late with this operation or with earlier ones.
    pub generator: u64,
    /// The part of the generator's wait during which the client was idle and the operation was due.
    pub idle: u64,
}

impl Wait {
    /// The wait of an operation that was sent at `sent` by a client that has been idle since `free`. The client would
    /// have been idle `delay` earlier if the generator had never been late. Lindley's recursion (Proc. Camb. Phil. Soc.
    /// 48, 1952) is applied to the actual client and to a client whose generator is never late.
    #[inline]
    pub fn new(due: u64, free: u64, delay: u64, sent: u64) -> Self {
        let busy = free.saturating_sub(due);
        let delayed = busy.min(delay);
        let idle = sent.saturating_sub(due.max(free));
        Self { client: busy - delayed, generator: delayed + idle, idle }
    }

    /// Whether the generator made the operation late by more than `limit_ns`: either a client was idle for that long,
    /// or most of the wait results from an earlier delay, such as a pause of the process. Small delays that add up
    /// while an overloaded store keeps all clients busy do not count.
    #[inline]
    pub fn is_late(&self, limit_ns: u64) -> bool {
        self.idle > limit_ns || self.generator > limit_ns.max(self.client)
    }
}

/// The part of an operation's response time that the generator caused, with a rate.
#[derive(Clone, Copy, Debug)]
pub struct Lateness<'a> {
    /// Lateness of the generator in sending the operation, ns.
    pub sent_ns: u64,
    /// Records pauses of the client's thread.
    pub pulse: &'a Pulse,
    /// The total pause of the thread when the operation was sent, ns.
    pub held_ns: u64,
}

impl Lateness<'_> {
    /// Maximum time by which an answer processed at `done` would have been earlier with a punctual generator, ns.
    ///
    /// Answers reach an executor from outside, whether it is running or not, so it may have processed an answer late. A
    /// client on a separate thread is paused together with the store that it calls, so its answer would have arrived
    /// earlier by the length of the pause.
    #[inline]
    pub fn lead_at(&self, done: u64) -> u64 {
        let seen_late = if self.pulse.clients > 0 {
            self.pulse.behind_ns(done)
        } else {
            self.pulse.pause_ns(done).saturating_sub(self.held_ns)
        };
        self.sent_ns + seen_late
    }
}
