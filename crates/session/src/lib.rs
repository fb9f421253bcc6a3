//! The traits of a store (`Store`, `Connection`, `Session`) and their argument types.

pub mod about;
pub mod erased;
pub mod error;
pub mod guarantee;
pub mod null;
pub mod options;
pub mod placement;
pub mod session;
pub mod statements;

pub use about::{About, Property, Role};
pub use error::{EngineError, ErrorKind, Failure};
pub use guarantee::Guarantee;
pub use options::{Durability, Options};
pub use placement::Placement;
pub use session::{Collections, Connection, ConnectionAttempts, Drive, ReadLevel, RecordStore, Rows, Session, Store};
