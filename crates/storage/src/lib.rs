//! Files and sort: the work of DFSIO and of TeraSort. It knows no spec, no event and no command line.

pub mod sort;
