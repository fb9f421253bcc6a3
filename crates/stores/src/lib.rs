//! Stores: the drivers of the systems.
//!
//! One file or folder for each store, with the traits of the crate `loadstone_session`. An embedded engine implements the smaller
//! [`KeyValue`](key_value::KeyValue) and gets both from [`KeyValueStore`](key_value::KeyValueStore), so that reading,
//! merging and scanning are the same code, and the same cost, for all of them.

mod c_api;
pub mod cache;
pub mod cassandra;
pub mod certificates;
mod deadline;
mod embedded;
pub mod fjall;
pub mod hbase;
pub mod hse;
pub mod jvm;
pub mod key_value;
pub mod lmdb;
pub mod postgres;
pub mod reconnect;
pub mod redb;
pub mod redis;
mod remote;
pub mod rocksdb;
mod tls;

pub use loadstone_session::*;
