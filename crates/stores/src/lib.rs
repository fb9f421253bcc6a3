//! Stores: how each system is reached.
//!
//! One trait for what is opened ([`Store`]), one for what any session has ([`Connection`]), one for sessions of records
//! ([`Session`]); one file per store. An embedded engine implements the smaller
//! [`KeyValue`](key_value::KeyValue) and gets both from [`KeyValueStore`](key_value::KeyValueStore), so that reading,
//! merging and scanning are the same code, and the same cost, for all of them.

pub mod about;
pub mod cache;
pub mod cassandra;
mod deadline;
mod embedded;
pub mod erased;
pub mod error;
pub mod fjall;
pub mod guarantee;
pub mod hbase;
pub mod hse;
pub mod jvm;
pub mod key_value;
pub mod lmdb;
pub mod null;
pub mod options;
pub mod postgres;
pub mod reconnect;
pub mod redb;
pub mod redis;
mod remote;
pub mod rocksdb;
pub mod session;

pub use about::{About, Property, Role};
pub use error::{Failure, StoreError};
pub use guarantee::Guarantee;
pub use options::{Durability, Options};
pub use reconnect::ConnectionAttempts;
pub use session::{Collections, Connection, Drive, ReadLevel, RecordStore, Rows, Session, Store};
