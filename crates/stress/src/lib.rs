//! cassandra-stress without a server.
//!
//! * [`command_line`] parses the tool's arguments, with its messages and exit statuses, into plain [`settings`].
//! * Data: [`random`], [`distribution`], [`population`] and [`row`] make the keys and values of the predefined tables, byte
//!   for byte as the tool does. They have no I/O, and their hot paths allocate nothing.
//! * [`yaml`] and [`profile`] read user profiles; [`columns`] has their operations, [`partition`], [`value`] and [`cql`] their rows.
//! * [`statements`] has the texts of its statements, [`output`] prints as it does, and [`explain`] describes a run in words.

pub mod columns;
pub mod command_line;
pub mod compat;
pub mod cql;
pub mod distribution;
pub mod explain;
pub mod number;
pub mod output;
pub mod partition;
pub mod population;
pub mod profile;
pub mod random;
pub mod row;
pub mod settings;
pub mod spec;
pub mod statements;
pub mod value;
pub mod yaml;
