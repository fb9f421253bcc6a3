//! cassandra-stress without a server: what needs no connection.
//!
//! * Data: [`random`], [`distribution`], [`population`] and [`row`] make the keys and values of the predefined tables, byte
//!   for byte those of the tool. They have no I/O, and their hot paths allocate nothing.
//! * [`output`] prints as the tool does.

pub mod compat;
pub mod distribution;
pub mod output;
pub mod population;
pub mod random;
pub mod row;
pub mod spec;
