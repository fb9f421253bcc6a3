//! A timer for many clients on one executor, with one timerfd and one heap of due times.
//!
//! The executor's timers have a resolution of milliseconds, which is as coarse as the lateness that counts as
//! `generator-limited`. A timerfd wakes with microsecond precision. Clients wait in a heap, and only the earliest due
//! time is set in the kernel.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::io::unix::AsyncFd;

use crate::clock::{Clock, Monotonic, SLICE_NS, Timer};

struct AlarmWait {
    ns: u64,
    waker: Waker,
}

impl PartialEq for AlarmWait {
    fn eq(&self, other: &Self) -> bool {
        self.ns == other.ns
    }
}
impl Eq for AlarmWait {}
impl PartialOrd for AlarmWait {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for AlarmWait {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.ns.cmp(&other.ns)
    }
}

struct Inner {
    fd: AsyncFd<OwnedFd>,
    waits: RefCell<BinaryHeap<Reverse<AlarmWait>>>,
    armed_ns: Cell<u64>,
    /// The number of clones.
    clones: Cell<u32>,
    /// The clone that had the last turn, and the number of its consecutive turns.
    last: Cell<(u32, u32)>,
}

/// Number of consecutive turns after which a client yields to the other clients. A yield costs an `epoll_wait` of the
/// executor, and splits requests that would be sent together. An operation that waits for a network yields anyway. Only
/// a client whose operations never wait, and which therefore has many turns in a row, needs an explicit yield.
const TURN_EVERY: u32 = 16;

/// A timer for the clients of one executor; each client has a clone.
pub struct Alarm(Rc<Inner>, u32);

impl Clone for Alarm {
    fn clone(&self) -> Self {
        self.0.clones.set(self.0.clones.get().wrapping_add(1));
        Self(Rc::clone(&self.0), self.0.clones.get())
    }
}

impl Alarm {
    /// Creates an alarm on the current executor, and its task, which must be spawned there. The task calls `stopped` on
    /// behalf of all waiting clients: if thousands of clients each checked it, they would be late for their operations.
    pub fn new(stopped: impl Fn() -> bool) -> io::Result<(Self, impl Future<Output = ()>)> {
        // SAFETY: creates a new descriptor, which is owned from here on.
        let fd = unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: the descriptor stays open as long as the `AsyncFd` that owns it exists.
        let fd = unsafe { AsyncFd::register(fd)? };
        let inner = Inner {
            fd,
            waits: RefCell::default(),
            armed_ns: Cell::new(u64::MAX),
            clones: Cell::new(0),
            last: Cell::new((0, 0)),
        };
        let alarm = Self(Rc::new(inner), 0);
        let ringing = alarm.clone();
        Ok((alarm, async move { ringing.ring_due(stopped).await }))
    }

    async fn ring_due(&self, stopped: impl Fn() -> bool) {
        loop {
            // The number of expirations is not read: setting the timer again clears it, and the next expiration is a
            // new edge for epoll.
            let Ok(mut ready) = self.0.fd.readable().await else { return };
            ready.clear_ready();
            self.0.armed_ns.set(u64::MAX);
            let (now, over) = (Monotonic.now_ns(), stopped());
            let mut waits = self.0.waits.borrow_mut();
            while waits.peek().is_some_and(|wait| over || wait.0.ns <= now) {
                if let Some(Reverse(wait)) = waits.pop() {
                    wait.waker.wake();
                }
            }
            if let Some(Reverse(next)) = waits.peek() {
                self.arm_timer(next.ns.min(now + SLICE_NS));
            }
        }
    }

    fn arm_timer(&self, ns: u64) {
        if ns >= self.0.armed_ns.get() {
            return;
        }
        self.0.armed_ns.set(ns);
        // The wait is relative, because [`Monotonic`] and the kernel's clock may differ; 0 would disarm the timer.
        let wait = ns.saturating_sub(self.now_ns()).max(1);
        let value = libc::timespec {
            tv_sec: (wait / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait % 1_000_000_000) as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the descriptor is a timerfd, and the struct outlives the call.
        unsafe {
            libc::timerfd_settime(self.0.fd.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut());
        }
    }
}

impl Clock for Alarm {
    #[inline]
    fn now_ns(&self) -> u64 {
        Monotonic.now_ns()
    }
}

impl Timer for Alarm {
    async fn wait_until(&self, ns: u64, stopped: impl Fn() -> bool) {
        let mut waits = false;
        poll_fn(|context| {
            let now = self.now_ns();
            if now >= ns || stopped() {
                return Poll::Ready(());
            }
            if !waits {
                waits = true;
                self.0.waits.borrow_mut().push(Reverse(AlarmWait { ns, waker: context.waker().clone() }));
                self.arm_timer(ns.min(now + SLICE_NS));
            }
            Poll::Pending
        })
        .await;
    }

    #[inline]
    async fn yield_to_clients(&self) {
        let turns = match self.0.last.get() {
            (clone, turns) if clone == self.1 => turns.wrapping_add(1),
            _ => 1,
        };
        self.0.last.set((self.1, turns));
        if turns.is_multiple_of(TURN_EVERY) {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The total number of stop checks while many clients wait.
    fn count_wakes(until_ns: u64, stopped: impl Fn() -> bool + Copy + 'static) -> u32 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let looks = Rc::new(Cell::new(0));
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let (alarm, ringing) = Alarm::new(stopped).unwrap();
            let ringing = tokio::task::spawn_local(ringing);
            let clients: Vec<_> = (0..100)
                .map(|_| {
                    let (alarm, looks) = (alarm.clone(), Rc::clone(&looks));
                    let counted = move || {
                        looks.set(looks.get() + 1);
                        stopped()
                    };
                    tokio::task::spawn_local(async move {
                        let due = alarm.now_ns().saturating_add(until_ns);
                        alarm.wait_until(due, counted).await;
                        assert!(alarm.now_ns() >= due || stopped());
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            ringing.abort();
        });
        looks.get()
    }

    #[test]
    fn waiting_client_is_not_woken_early() {
        assert_eq!(count_wakes(5 * SLICE_NS, || false), 100);
    }

    /// The order in which clients with the same number of turns have their turns. `waits`: whether their operations
    /// wait.
    fn order_turns(clients: u32, turns: u32, waits: bool) -> Vec<u32> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let (alarm, _ringing) = Alarm::new(|| false).unwrap();
            let tasks: Vec<_> = (0..clients)
                .map(|client| {
                    let (alarm, order) = (alarm.clone(), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        for _ in 0..turns {
                            if waits {
                                tokio::task::yield_now().await;
                            }
                            order.borrow_mut().push(client);
                            alarm.yield_to_clients().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        order.take()
    }

    /// Whether each of three clients has had a turn. The executor may run them in any order.
    fn has_each_client(turns: &[u32]) -> bool {
        (0..3).all(|client| turns.contains(&client))
    }

    #[test]
    fn client_without_waits_lets_the_next_one_run() {
        let order = order_turns(3, 2 * TURN_EVERY, false);
        let firsts: Vec<u32> = order.chunks(TURN_EVERY as usize).map(|turns| turns[0]).collect();
        assert!(firsts.chunks(3).all(has_each_client), "{firsts:?}");
        assert!(order.chunks(TURN_EVERY as usize).all(|turns| turns.iter().all(|client| *client == turns[0])));
    }

    #[test]
    fn clients_that_wait_are_not_delayed_further() {
        let order = order_turns(3, 50, true);
        assert!(order.chunks(3).all(has_each_client), "{order:?}");
    }

    #[test]
    fn a_stop_wakes_a_client_that_waits_forever() {
        thread_local! { static ASKED: Cell<u32> = const { Cell::new(0) }; }
        let after_all_wait = || {
            ASKED.set(ASKED.get() + 1);
            ASKED.get() > 100
        };
        assert!((101..=200).contains(&count_wakes(u64::MAX, after_all_wait)));
    }
}
