//! Stores: the drivers for the tested systems.
//!
//! Each store is a file or folder that implements the traits of the crate `loadstone_session`. An embedded engine
//! implements only the smaller trait [`KeyValue`](key_value::KeyValue), and [`KeyValueStore`](key_value::KeyValueStore)
//! provides its store and session. So the code for reading, merging and scanning, and its cost, is the same for all
//! embedded engines.

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
