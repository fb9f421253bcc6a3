//! The parts of cassandra-stress that do not need a server.
//!
//! * [`command_line`] parses the tool's arguments into plain [`settings`], with the tool's messages and exit statuses.
//! * Data: [`random`], [`distribution`], [`population`] and [`row`] generate the keys and values of the predefined
//!   tables, byte for byte as the tool does. They do no I/O, and their hot paths do not allocate memory.
//! * [`yaml`] and [`profile`] read user profiles; [`columns`] contains their operations; [`partition`], [`value`] and
//!   [`cql`] generate their rows.
//! * [`statements`] contains the tool's statements, [`output`] prints in the tool's formats, and [`explain`] describes
//!   a run in words.

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
