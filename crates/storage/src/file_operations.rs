//! The operations of a trial on files, which are a pure function of seed and index.
//!
//! An operation processes one buffer of one file. The operations on a file are consecutive and belong to one client, so
//! files are the unit in which clients claim work and segments divide it.

use loadstone_load::random::mix_bits;
use loadstone_load::{StepId, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codec::Codec;

/// Maximum number of buffers in a trial, so that sums of indices do not overflow.
const OPERATIONS_MAX: u64 = 1 << 48;
/// Maximum size of a buffer, in bytes.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Work on files, as in Hadoop's TestDFSIO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// The directory of the files, relative to the store's directory.
    pub directory: String,
    /// The prefix of the file names; a number follows it.
    pub prefix: String,
    /// The number of files.
    pub files: u64,
    /// Bytes written to, appended to or read from each file. For truncate: the length that remains.
    pub file_bytes: u64,
    /// Bytes per operation; the last operation on a file may have fewer.
    pub buffer_bytes: u64,
    /// The operation on the files.
    pub action: Action,
    /// The order of access.
    #[serde(default)]
    pub access: Access,
    /// With `access` skip: number of bytes skipped after each buffer.
    #[serde(default)]
    pub skip_bytes: u64,
    /// Random positions are multiples of this: 1 as in Hadoop, or the buffer size as in fio.
    #[serde(default = "default_count")]
    pub align_bytes: u64,
    /// The condition under which a written file counts as complete.
    #[serde(default)]
    pub sync: Sync,
    /// Whether the bytes read are compared with the bytes written.
    #[serde(default = "yes")]
    pub verify: bool,
    /// How the file's bytes are compressed; absent: not compressed. `file_bytes` is the length before compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Codec>,
    /// Whether half of the written content is zeros, so that compression can halve it.
    #[serde(default)]
    pub compressible: bool,
    /// Number of copies of a written file; absent: the file system's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// Block size of a written file, in bytes; absent: the file system's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
}

fn default_count() -> u64 {
    1
}

fn yes() -> bool {
    true
}

/// The operation on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Files are created and written.
    Write,
    /// Files are appended to.
    Append,
    /// Files are read.
    Read,
    /// Files are truncated to a length.
    Truncate,
}

/// The order in which the buffers of a file are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// From the beginning to the end.
    #[default]
    Sequential,
    /// At random positions.
    Random,
    /// From the end to the beginning.
    Backward,
    /// From the beginning to the end, with bytes skipped after each buffer.
    Skip,
}

/// The condition under which a written file counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// When it is closed.
    #[default]
    None,
    /// When the file system has received all bytes and the file is closed.
    Flush,
    /// When the device has stored all bytes (fsync, hsync) and the file is closed.
    Close,
    /// When the device has stored all bytes and the file is closed, with a sync after each buffer.
    Buffer,
}

/// The timed steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum FileStep {
    /// A file is opened or created.
    Open,
    /// A buffer is read.
    Read,
    /// A buffer is written; the step ends when the call returns.
    Write,
    /// The file system receives the written bytes.
    Flush,
    /// The device receives the written bytes.
    Sync,
    /// A file is closed.
    Close,
    /// A buffer that was read is compared with the bytes written.
    Verify,
    /// The content of a buffer is generated.
    Generate,
    /// A file is truncated to a length.
    Truncate,
    /// A client closes its session.
    Cleanup,
}

impl FileStep {
    /// The names of the steps.
    pub const NAMES: [&'static str; 10] =
        ["OPEN", "READ", "WRITE", "FLUSH", "SYNC", "CLOSE", "VERIFY", "GENERATE", "TRUNCATE", "CLEANUP"];

    /// The number of the step.
    #[inline]
    pub const fn id(self) -> StepId {
        StepId(self as u16)
    }
}

/// One buffer of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOperation {
    /// The number of the file.
    pub file: u64,
    /// The number of the operation among the operations on the file.
    pub part: u64,
    /// The buffer's offset in the file (for an append: from the previous end of the file).
    pub offset: u64,
    /// The buffer's length, in bytes; 0 for an empty file or a truncation.
    pub bytes: u64,
    /// Whether this is the last operation on the file.
    pub last: bool,
}

/// The operations of a [`FilesSpec`].
#[derive(Clone, Debug)]
pub struct FilesWork {
    /// The spec of the work.
    pub spec: FilesSpec,
    seed: u64,
    /// Number of operations per file.
    parts: u64,
    /// The distance between consecutive accesses, in buffers, when whole buffers are accessed in random order.
    stride: u64,
}

impl FilesWork {
    /// Derives the operations from a spec. An error consists of a message and a hint.
    pub fn new(spec: FilesSpec, seed: u64) -> Result<Self, (String, &'static str)> {
        let wrong = |message: String, hint| Err((message, hint));
        if spec.files == 0 {
            return wrong("files must be at least 1, got 0".to_owned(), "set -nrFiles to 1 or more");
        }
        if spec.buffer_bytes == 0 || spec.buffer_bytes > BUFFER_BYTES_MAX {
            return wrong(
                format!("buffer_bytes must be 1 to {BUFFER_BYTES_MAX}, got {}", spec.buffer_bytes),
                "set -bufferSize to 1048576",
            );
        }
        if spec.action == Action::Append && spec.access != Access::Sequential {
            return wrong("an append must be sequential".to_owned(), "leave -random, -backward and -skip out");
        }
        if spec.action == Action::Write && matches!(spec.access, Access::Backward | Access::Skip) {
            return wrong("a write must be sequential or random".to_owned(), "leave -backward and -skip out");
        }
        let whole = matches!(spec.action, Action::Write | Action::Read) && spec.access == Access::Sequential;
        if spec.compression.is_some() && !whole {
            return wrong(
                "a compressed file can only be written and read from its beginning to its end".to_owned(),
                "leave -compression out, or use -write or -read alone",
            );
        }
        if spec.align_bytes == 0 {
            return wrong("align_bytes must be at least 1, got 0".to_owned(), "leave align_bytes out for 1");
        }
        if spec.directory.is_empty() || spec.directory.contains("..") || spec.prefix.contains('/') {
            return wrong(
                format!("\"{}\" and \"{}\" are not a directory and a prefix of names", spec.directory, spec.prefix),
                "use Hadoop's, io_data and test_io_",
            );
        }
        let stride = match spec.access {
            Access::Skip => spec.buffer_bytes.saturating_add(spec.skip_bytes),
            _ => spec.buffer_bytes,
        };
        let parts = if spec.action == Action::Truncate { 1 } else { spec.file_bytes.div_ceil(stride).max(1) };
        if parts.checked_mul(spec.files).is_none_or(|all| all > OPERATIONS_MAX) {
            return wrong(
                format!("{} files of {} bytes are more than {OPERATIONS_MAX} buffers", spec.files, spec.file_bytes),
                "use a larger -bufferSize, or fewer or smaller files",
            );
        }
        // A stride that is coprime with the number of buffers reaches every buffer.
        let mut stride = mix_bits(seed) % parts;
        while common_divisor(stride, parts) > 1 {
            stride = (stride + 1) % parts;
        }
        Ok(Self { spec, seed, parts, stride })
    }

    /// Operation number `part` of a file.
    #[inline]
    pub fn operation(&self, file: u64, part: u64) -> FileOperation {
        let FilesSpec { file_bytes: whole, buffer_bytes: buffer, .. } = self.spec;
        let offset = match self.spec.access {
            Access::Sequential => part * buffer,
            Access::Skip => part * (buffer + self.spec.skip_bytes),
            // As in TestDFSIO's nextOffset, whole buffers are read from the end. The last buffer begins at 0 and may
            // overlap the buffer read before it.
            Access::Backward => whole.saturating_sub((part + 1).saturating_mul(buffer)),
            Access::Random if self.spec.align_bytes == buffer => self.shuffle_part(file, part) * buffer,
            Access::Random => {
                let last = whole.saturating_sub(buffer) / self.spec.align_bytes;
                (self.draw(file, part) % (last + 1)) * self.spec.align_bytes
            }
        };
        let bytes = if self.spec.action == Action::Truncate { 0 } else { buffer.min(whole.saturating_sub(offset)) };
        FileOperation { file, part, offset, bytes, last: part + 1 == self.parts }
    }

    /// The number of operations on a file.
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// Total number of bytes that the operations on a file transfer; for a truncation, the length that remains.
    pub fn bytes_of_file(&self) -> u64 {
        match self.spec.access {
            Access::Sequential => self.spec.file_bytes,
            Access::Random if self.spec.align_bytes == self.spec.buffer_bytes => self.spec.file_bytes,
            _ => (0..self.parts).map(|part| self.operation(0, part).bytes).sum(),
        }
    }

    /// Writes the path of a file, which is below a base directory, to a string.
    pub fn path_of(&self, base: &str, file: u64, into: &mut String) {
        use std::fmt::Write;
        into.clear();
        let FilesSpec { directory, prefix, .. } = &self.spec;
        // Writing to a string cannot fail.
        let _ = write!(into, "{}/{directory}/{prefix}{file}", base.trim_end_matches('/'));
    }

    /// The step that is timed when a buffer is processed.
    pub fn step(&self) -> FileStep {
        match self.spec.action {
            Action::Write | Action::Append => FileStep::Write,
            Action::Read => FileStep::Read,
            Action::Truncate => FileStep::Truncate,
        }
    }

    fn draw(&self, file: u64, part: u64) -> u64 {
        mix_bits(mix_bits(self.seed ^ 0x5851_f42d_4c95_7f2d).wrapping_add(file) ^ part.rotate_left(32))
    }

    /// The index of the buffer that an operation accesses. Each buffer is accessed once, in a pseudo-random order.
    #[inline]
    fn shuffle_part(&self, file: u64, part: u64) -> u64 {
        // Both factors are below 2^48.
        let steps = u128::from(part) * u128::from(self.stride) + u128::from(self.draw(file, 0) % self.parts);
        match u64::try_from(steps) {
            Ok(steps) => steps % self.parts,
            Err(_) => (steps % u128::from(self.parts)) as u64,
        }
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Workload for FilesWork {
    type Operation = FileOperation;

    fn step_names(&self) -> &'static [&'static str] {
        &FileStep::NAMES
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut FileOperation) {
        *operation = self.operation(index / self.parts, index % self.parts);
    }

    fn step_of(&self, _index: u64) -> StepId {
        self.step().id()
    }

    fn operation_count(&self) -> Option<u64> {
        Some(self.parts * self.spec.files)
    }

    fn any_order(&self) -> bool {
        true
    }

    fn unit(&self) -> u64 {
        self.parts
    }

    fn operation_bytes(&self) -> u64 {
        self.spec.buffer_bytes.min(self.spec.file_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(files: u64, file_bytes: u64, buffer_bytes: u64, access: Access) -> FilesSpec {
        FilesSpec {
            directory: "io_data".to_owned(),
            prefix: "test_io_".to_owned(),
            files,
            file_bytes,
            buffer_bytes,
            action: Action::Read,
            access,
            skip_bytes: 0,
            align_bytes: 1,
            sync: Sync::None,
            verify: true,
            compression: None,
            compressible: false,
            replication: None,
            block_bytes: None,
        }
    }

    proptest! {
        /// Each byte is read or written exactly once, for all sizes, in sequential order and in a random order of whole
        /// buffers.
        #[test]
        fn the_buffers_of_a_file_cover_it_once(file_bytes in 0u64..5_000, buffer in 1u64..700, seed: u64, random: bool) {
            let access = if random { Access::Random } else { Access::Sequential };
            let files = FilesWork::new(FilesSpec { align_bytes: buffer, ..spec(3, file_bytes, buffer, access) }, seed).unwrap();
            let mut parts: Vec<_> = (0..files.parts()).map(|part| files.operation(2, part)).collect();
            parts.sort_by_key(|part| part.offset);
            let mut at = 0;
            for part in &parts {
                prop_assert_eq!(part.offset, at);
                at += part.bytes;
            }
            prop_assert_eq!(at, file_bytes);
        }

        /// No operation reads beyond the end of the file, in any order.
        #[test]
        fn no_buffer_lies_beyond_the_file(file_bytes in 1u64..5_000, buffer in 1u64..700, skip in 0u64..900, seed: u64, which in 0usize..4) {
            let access = [Access::Sequential, Access::Random, Access::Backward, Access::Skip][which];
            let files = FilesWork::new(FilesSpec { skip_bytes: skip, ..spec(3, file_bytes, buffer, access) }, seed).unwrap();
            for part in 0..files.parts() {
                let operation = files.operation(1, part);
                prop_assert!(operation.bytes > 0 && operation.offset + operation.bytes <= file_bytes, "{operation:?}");
                prop_assert_eq!(operation.last, part + 1 == files.parts());
            }
        }
    }

    #[test]
    fn backward_and_skip_use_hadoops_offsets() {
        let offsets = |spec: FilesSpec| {
            let files = FilesWork::new(spec, 1).unwrap();
            (0..files.parts()).map(|part| files.operation(0, part).offset).collect::<Vec<_>>()
        };
        assert_eq!(offsets(spec(1, 2_500, 1_000, Access::Backward)), [1_500, 500, 0]);
        let skip = FilesSpec { skip_bytes: 500, ..spec(1, 4_000, 1_000, Access::Skip) };
        assert_eq!(offsets(skip), [0, 1_500, 3_000]);
    }

    #[test]
    fn an_empty_file_has_one_operation_without_bytes() {
        let files = FilesWork::new(spec(2, 0, 1_000, Access::Sequential), 1).unwrap();
        assert_eq!(files.operation_count(), Some(2));
        let expected = FileOperation { file: 1, part: 0, offset: 0, bytes: 0, last: true };
        assert_eq!(files.operation(1, 0), expected);
    }
}
