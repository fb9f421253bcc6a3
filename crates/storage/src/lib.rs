//! Files: file systems behind one small trait, the bytes that stand in them, and what a trial does with them.
//!
//! [`fs`] reaches local disks and HDFS. [`content`] is what a file holds: a pure function of seed, file and offset. [`work`] is what
//! is done, [`store`] how the engine reaches it. [`sort`] is TeraSort, in stages.

pub mod content;
pub mod fs;
pub mod sort;
pub mod store;
pub mod work;
