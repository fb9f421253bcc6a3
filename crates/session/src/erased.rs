//! Stores and sessions behind virtual calls, so that the code that uses them is compiled once for all stores.
//!
//! A virtual call costs about 2 ns. The future that the call returns is moved into a reused buffer of the session, so
//! nothing is allocated. A call to a networked store takes thousands of times longer than a virtual call. The closed
//! loop of an embedded store is compiled for its session type: see [`VirtualSession::downcast`].

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use loadstone_load::{Projection, Row, Status};

use crate::about::About;
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::placement::Placement;
use crate::session::{
    Collections, Connection, ConnectionAttempts, Drive, ReadLevel, RecordStore, Rows, ServerEvent, Session, Store,
};

/// The facts about a type of store that are known without opening a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreType {
    /// The store's description, which includes its name and properties.
    pub about: About,
    /// The threads that drive the store's sessions.
    pub driving: Driving,
    /// See [`Store::read_levels`].
    pub read_levels: fn() -> &'static [ReadLevel],
    open: fn(&Options) -> Result<Arc<dyn OpenRecordStore>, EngineError>,
}

impl StoreType {
    /// Describes a type of store.
    pub const fn describe<S: RecordStore>() -> Self {
        Self {
            about: S::ABOUT,
            driving: Driving::for_store::<S>(),
            read_levels: S::read_levels,
            open: |options| Ok(Arc::new(S::open(options)?)),
        }
    }

    /// Opens a store of this type.
    pub fn open(&self, options: &Options) -> Result<Arc<dyn OpenRecordStore>, EngineError> {
        (self.open)(options)
    }
}

/// The threads that a store's clients need.
#[derive(Clone, Copy, Debug)]
pub struct Driving {
    /// How the store's sessions are driven.
    pub drive: Drive,
    /// Stack size of each thread, in bytes.
    pub stack_bytes: usize,
    /// The number of clients that share an executor before a second one is started.
    pub clients_per_executor: u64,
}

impl Driving {
    /// The threads that a type of store needs.
    pub const fn for_store<S: Store>() -> Self {
        Self { drive: S::DRIVE, stack_bytes: S::STACK_BYTES, clients_per_executor: S::CLIENTS_PER_EXECUTOR }
    }
}

/// Declares [`OpenStore`] with methods that call the methods of [`Store`] with the same names.
macro_rules! open_store {
    ($($(#[$about:meta])* fn $method:ident(&self $(, $argument:ident: $type:ty)?) -> $output:ty;)*) => {
        /// An open store of any type: see [`Store`] for the methods.
        pub trait OpenStore: fmt::Debug + Send + Sync {
            /// Closes the store, unless there are other references to it.
            fn close(self: Arc<Self>) -> Result<(), EngineError>;
            $($(#[$about])* fn $method(&self $(, $argument: $type)?) -> $output;)*
        }

        impl<S: Store> OpenStore for S {
            fn close(self: Arc<Self>) -> Result<(), EngineError> {
                Arc::try_unwrap(self).map_or(Ok(()), Store::close)
            }

            $(fn $method(&self $(, $argument: $type)?) -> $output {
                Store::$method(self $(, $argument)?)
            })*
        }
    };
}

open_store! {
    /// The store's guarantee.
    fn guarantee(&self) -> Guarantee;
    /// Waits until the store is idle.
    fn settle(&self) -> Result<(), EngineError>;
    /// Whether operations cross a network.
    fn is_networked(&self) -> bool;
    /// Number of connections for this number of clients.
    fn connections(&self, clients: u64) -> u64;
    /// The activity of garbage collectors in this process since its start.
    fn collections(&self) -> Vec<Collections>;
    /// The number of attempts to connect so far; `None` if the store does not count them.
    fn connection_attempts(&self) -> Option<ConnectionAttempts>;
    /// Events of the store's servers.
    fn server_events(&self) -> Vec<ServerEvent>;
    /// The placement of the keys on servers, if it is known.
    fn placement(&self) -> Option<Placement>;
    /// The reason why the store can no longer be used; `None` if it can be used.
    fn describe_loss(&self) -> Option<String>;
}

/// An open store of records.
pub trait OpenRecordStore: OpenStore {
    /// Creates a session on the thread that will use it.
    fn session(&self) -> Result<VirtualSession, EngineError>;
}

impl<S: RecordStore> OpenRecordStore for S {
    fn session(&self) -> Result<VirtualSession, EngineError> {
        Ok(VirtualSession { session: Box::new(Store::session(self)?), slot: FutureSlot::default() })
    }
}

/// A session on any record store.
pub struct VirtualSession {
    session: Box<dyn AnySession>,
    slot: FutureSlot,
}

impl VirtualSession {
    /// Wraps a session of a known type.
    pub fn new<S: Session + 'static>(session: S) -> Self {
        Self { session: Box::new(session), slot: FutureSlot::default() }
    }

    /// Returns the wrapped session if it is of type `S`, otherwise `self` as the error.
    pub fn downcast<S: Session + 'static>(&mut self) -> Result<&mut S, &mut Self> {
        if !self.session.any().is::<S>() {
            return Err(self);
        }
        // An `if let` alone would not compile: the borrow of the returned reference would also last through the other
        // branch.
        match self.session.any().downcast_mut() {
            Some(session) => Ok(session),
            None => unreachable!("a session changes its type"),
        }
    }
}

impl fmt::Debug for VirtualSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualSession").finish_non_exhaustive()
    }
}

/// Declares [`AnySession`]. Each of its methods calls a method of another trait, and stores the returned future in a
/// slot.
macro_rules! any_session {
    ($(fn $trait:ident::$method:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        /// The methods of [`Connection`] and [`Session`]. A method that returns a future stores it in a slot.
        trait AnySession {
            fn any(&mut self) -> &mut dyn Any;
            fn is_unsent(&self) -> bool;
            fn last_error(&mut self) -> Option<String>;
            fn is_refusal(&self, status: Status) -> bool;
            $(fn $method<'a>(&'a mut self, slot: &'a mut FutureSlot $(, $argument: $type)*) -> InPlace<'a, $output>;)*
        }

        impl<S: Session + 'static> AnySession for S {
            fn any(&mut self) -> &mut dyn Any {
                self
            }

            fn is_unsent(&self) -> bool {
                Connection::is_unsent(self)
            }

            fn last_error(&mut self) -> Option<String> {
                Connection::last_error(self)
            }

            fn is_refusal(&self, status: Status) -> bool {
                Connection::is_refusal(self, status)
            }

            $(fn $method<'a>(&'a mut self, slot: &'a mut FutureSlot $(, $argument: $type)*) -> InPlace<'a, $output> {
                slot.put_future($trait::$method(self $(, $argument)*))
            })*
        }
    };
}

any_session! {
    fn Connection::connect() -> Result<(), EngineError>;
    fn Connection::pause() -> ();
    fn Connection::cleanup() -> Status;
    fn Session::read(key: &'a [u8], fields: Projection<'a>, row: &'a mut Row) -> Status;
    fn Session::scan(key: &'a [u8], count: usize, fields: Projection<'a>, rows: &'a mut Rows) -> Status;
    fn Session::insert(key: &'a [u8], row: &'a Row) -> Status;
    fn Session::update(key: &'a [u8], row: &'a Row) -> Status;
    fn Session::delete(key: &'a [u8]) -> Status;
}

impl Connection for VirtualSession {
    fn connect(&mut self) -> impl Future<Output = Result<(), EngineError>> {
        self.session.connect(&mut self.slot)
    }

    fn pause(&mut self) -> impl Future<Output = ()> {
        self.session.pause(&mut self.slot)
    }

    fn is_unsent(&self) -> bool {
        self.session.is_unsent()
    }

    fn last_error(&mut self) -> Option<String> {
        self.session.last_error()
    }

    fn is_refusal(&self, status: Status) -> bool {
        self.session.is_refusal(status)
    }

    fn cleanup(&mut self) -> impl Future<Output = Status> {
        self.session.cleanup(&mut self.slot)
    }
}

impl Session for VirtualSession {
    const MAY_PLACE_KEYS: bool = true;

    async fn read(&mut self, key: &[u8], fields: Projection<'_>, row: &mut Row) -> Status {
        self.session.read(&mut self.slot, key, fields, row).await
    }

    async fn scan(&mut self, key: &[u8], count: usize, fields: Projection<'_>, rows: &mut Rows) -> Status {
        self.session.scan(&mut self.slot, key, count, fields, rows).await
    }

    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        self.session.insert(&mut self.slot, key, row).await
    }

    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        self.session.update(&mut self.slot, key, row).await
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        self.session.delete(&mut self.slot, key).await
    }
}

/// Memory for one future at a time, reused for the next future.
#[derive(Debug, Default)]
struct FutureSlot {
    memory: Option<(NonNull<u8>, Layout)>,
    /// Whether the memory contains a future. The flag stays set if a future is leaked, because the memory of that
    /// future must never be reused.
    occupied: bool,
}

impl FutureSlot {
    /// Moves a future into the slot, which grows to the size of the largest future.
    fn put_future<'a, F: Future + 'a>(&'a mut self, future: F) -> InPlace<'a, F::Output> {
        let place = self.reserve_memory(Layout::new::<F>()).cast::<F>();
        // SAFETY: the memory has room for `F`, is aligned for it, and contains no other future.
        unsafe { place.write(future) };
        self.occupied = true;
        InPlace { future: place, occupied: &mut self.occupied }
    }

    fn reserve_memory(&mut self, layout: Layout) -> NonNull<u8> {
        match self.memory {
            Some((place, room)) if !self.occupied && room.size() >= layout.size() && room.align() >= layout.align() => {
                place
            }
            _ => self.grow_memory(layout),
        }
    }

    #[cold]
    fn grow_memory(&mut self, layout: Layout) -> NonNull<u8> {
        self.free_memory();
        // A future without state has size 0, and an allocation of size 0 is not allowed.
        let layout = layout.align_to(16).map_or(layout, |layout| layout.pad_to_align());
        let layout = if layout.size() == 0 { Layout::new::<u128>() } else { layout };
        // SAFETY: the size is not 0.
        let place = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        self.memory = Some((place, layout));
        self.occupied = false;
        place
    }

    fn free_memory(&mut self) {
        if let Some((place, layout)) = self.memory.take()
            && !self.occupied
        {
            // SAFETY: the memory was allocated with this layout and contains no future.
            unsafe { dealloc(place.as_ptr(), layout) };
        }
    }
}

impl Drop for FutureSlot {
    fn drop(&mut self) {
        self.free_memory();
    }
}

/// A future that is pinned in a slot.
struct InPlace<'a, T> {
    future: NonNull<dyn Future<Output = T> + 'a>,
    occupied: &'a mut bool,
}

impl<T> Future for InPlace<'_, T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the future is in the slot, which is borrowed until `self` is dropped, and it never moves.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }.poll(context)
    }
}

impl<T> Drop for InPlace<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `put_future` wrote the future, and nothing uses it after this.
        unsafe { self.future.drop_in_place() };
        *self.occupied = false;
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;

    fn poll_once<T>(future: InPlace<'_, T>) -> Poll<T> {
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns a future that takes at least `BYTES` bytes of memory and is never ready.
    fn pending_bytes<const BYTES: usize>(guard: Rc<()>) -> impl Future<Output = usize> {
        let bytes = [1u8; BYTES];
        async move {
            std::future::pending::<()>().await;
            bytes.len() + Rc::strong_count(&guard)
        }
    }

    #[test]
    fn slot_is_reused_and_drops_futures() {
        let (mut slot, guard) = (FutureSlot::default(), Rc::new(()));
        assert!(poll_once(slot.put_future(pending_bytes::<100>(Rc::clone(&guard)))).is_pending());
        let first = slot.memory.unwrap().0;
        assert_eq!(Rc::strong_count(&guard), 1, "the future is dropped when its `InPlace` is dropped");
        assert_eq!(poll_once(slot.put_future(async { 7 })), Poll::Ready(7));
        assert_eq!(slot.memory.unwrap().0, first);
        assert!(poll_once(slot.put_future(pending_bytes::<5_000>(Rc::clone(&guard)))).is_pending());
        assert!(slot.memory.unwrap().1.size() >= 5_000);
        assert_eq!(poll_once(slot.put_future(std::future::ready(()))), Poll::Ready(()));
    }

    #[test]
    fn leaked_future_keeps_its_memory() {
        let (mut slot, guard) = (FutureSlot::default(), Rc::new(()));
        std::mem::forget(slot.put_future(pending_bytes::<100>(Rc::clone(&guard))));
        let first = slot.memory.unwrap().0;
        assert_eq!(poll_once(slot.put_future(async { 1 })), Poll::Ready(1));
        assert_ne!(slot.memory.unwrap().0, first);
        assert_eq!(Rc::strong_count(&guard), 2);
    }

    #[test]
    fn overaligned_future_is_aligned() {
        #[repr(align(256))]
        struct Aligned(u8);
        let mut slot = FutureSlot::default();
        let aligned = Aligned(3);
        let future = async move {
            std::future::ready(()).await;
            (&raw const aligned).addr() % 256 + usize::from(aligned.0)
        };
        assert_eq!(poll_once(slot.put_future(future)), Poll::Ready(3));
    }
}
