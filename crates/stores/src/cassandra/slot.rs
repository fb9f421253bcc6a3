//! The slot in which a client waits for the answer to its only request, with reused buffers.

use std::cell::{Cell, Ref, RefCell};
use std::task::{Context, Poll, Waker};

use loadstone_load::Status;

use super::wire::{Body, Header, Short};
use crate::error::Failure;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Answered,
    Failed,
}

/// A client's slot.
#[derive(Debug, Default)]
pub struct Slot {
    /// Number of requests so far, to recognize an answer to an earlier request.
    serial: Cell<u32>,
    state: Cell<State>,
    waker: RefCell<Option<Waker>>,
    opcode: Cell<u8>,
    flags: Cell<u8>,
    body: RefCell<Vec<u8>>,
    failure: RefCell<Option<Failure>>,
}

impl Slot {
    /// Begins a request and returns its number.
    #[inline]
    pub fn begin(&self) -> u32 {
        self.serial.set(self.serial.get().wrapping_add(1));
        self.state.set(State::Waiting);
        self.serial.get()
    }

    /// Whether there is a request that has not been answered yet.
    pub fn is_waiting(&self) -> bool {
        self.serial.get() != 0 && self.state.get() == State::Waiting
    }

    /// Whether the slot is still waiting for the answer to this request.
    #[inline]
    fn awaits(&self, serial: u32) -> bool {
        self.serial.get() == serial && self.state.get() == State::Waiting
    }

    /// Stores an answer that has arrived.
    #[inline]
    pub fn answer(&self, serial: u32, header: Header, body: &[u8]) {
        if !self.awaits(serial) {
            return;
        }
        self.opcode.set(header.opcode);
        self.flags.set(header.flags);
        let mut own = self.body.borrow_mut();
        own.clear();
        own.extend_from_slice(body);
        self.end(State::Answered);
    }

    /// Stores the failure of a request that will not be answered.
    #[cold]
    pub fn fail(&self, serial: u32, status: Status, message: &str) {
        if self.awaits(serial) {
            *self.failure.borrow_mut() = Some(Failure::new(status, message));
            self.end(State::Failed);
        }
    }

    #[inline]
    fn end(&self, state: State) {
        self.state.set(state);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Waits for the answer.
    #[inline]
    pub fn poll(&self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        match self.state.get() {
            State::Answered => Poll::Ready(Ok(())),
            State::Failed => {
                let failure = self.failure.borrow_mut().take();
                Poll::Ready(Err(failure.unwrap_or_else(|| Failure::new(Status::Error, "no message"))))
            }
            State::Waiting => {
                let mut waker = self.waker.borrow_mut();
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    *waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// The opcode of the answer.
    #[inline]
    pub fn opcode(&self) -> u8 {
        self.opcode.get()
    }

    /// The bytes of the answer, to be passed to [`body_of`](Self::body_of).
    #[inline]
    pub fn bytes(&self) -> Ref<'_, Vec<u8>> {
        self.body.borrow()
    }

    /// The answer's body, which is part of its bytes.
    #[inline]
    pub fn body_of<'a>(&self, bytes: &'a [u8]) -> Result<Body<'a>, Short> {
        Body::behind(self.flags.get(), bytes)
    }
}
