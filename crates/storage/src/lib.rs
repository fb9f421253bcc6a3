//! Files: file systems behind one small trait, the content of files, and the operations that a trial performs on them.
//!
//! [`fs`] accesses local disks and HDFS. [`content`] defines the content of files as a pure function of seed, file and
//! offset; [`codec`] compresses it as Hadoop does. [`file_operations`] defines the operations, and [`store`] connects
//! them to the engine. [`sort`] is TeraSort, in stages.

pub mod codec;
pub mod content;
pub mod file_operations;
pub mod fs;
pub mod sort;
pub mod store;
