//! Performs the operations on files: opens a file, reads or writes one buffer after another, syncs the file and closes
//! it.

mod ending;

use loadstone_load::{Status, StepId};
use loadstone_session::Connection;
use loadstone_storage::codec::{Decoder, Encoder};
use loadstone_storage::content::{Content, Difference};
use loadstone_storage::file_operations::{Access, Action, FileOperation, FileStep, Sync};
use loadstone_storage::fs::{
    AccessHint as Reading, CreateOptions, FileSystem, FsError, FsErrorKind, OpenOptions, Reader, Writer,
};
use loadstone_storage::store::FileClient;

use super::FileWork;
use super::log::{FileEnd, FileTimes};
use crate::records::actor::worse_status;
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::clock::Timer;
use loadstone_measure::task::Task;

/// An open file.
#[derive(Debug)]
enum Handle<R, W> {
    Reader(R),
    Writer(W),
}

type HandleOf<F> = Handle<<F as FileSystem>::Reader, <F as FileSystem>::Writer>;

/// The file on which the client is working.
#[derive(Debug, Default)]
struct Current {
    path: String,
    times: FileTimes,
    bytes: u64,
    /// The offset of the first appended byte.
    base: u64,
    /// The content of the file; `None` if it is not known yet, or if Loadstone did not write the file.
    content: Option<Content>,
    /// With compression: the encoder for a file that is written, and the decoder for a file that is read.
    encoder: Option<Encoder>,
    decoder: Option<Decoder>,
    /// The first position at which Loadstone's mark is missing.
    unmarked: Option<Difference>,
    /// Number of bytes that were not compared, because they were read before the content was known.
    uncompared: u64,
    /// The failure after which the remaining buffers of the file are not attempted.
    failed: Option<Status>,
    /// Whether some bytes of the file were wrong: the file has failed, but reading continues.
    wrong: bool,
    /// Whether the file was begun but not finished.
    is_open: bool,
}

/// Performs one client's operations on files.
#[derive(Debug)]
pub struct FileActor<'a, F: FileSystem> {
    task: &'a Task<FileWork>,
    session: &'a mut FileClient<F>,
    handle: Option<HandleOf<F>>,
    file: Current,
    /// Whether the last operation was attempted but failed.
    attempted: bool,
    /// The content of a buffer before it is compressed.
    plain: Vec<u8>,
}

impl<'a, F: FileSystem> FileActor<'a, F> {
    /// Creates an actor for a client with this session.
    pub fn new(task: &'a Task<FileWork>, session: &'a mut FileClient<F>) -> Self {
        Self { task, session, handle: None, file: Current::default(), attempted: false, plain: Vec::new() }
    }

    /// The content that this trial writes.
    fn own_content(&self) -> Content {
        Content::new(self.task.seed).compressible(self.task.work.workload.spec.compressible)
    }

    /// Records a step with this result. If the step failed, also stores the error message.
    fn time_step<T: Timer, V>(
        &mut self,
        step: FileStep,
        result: Result<V, FsError>,
        watch: &Stopwatch<'_, T>,
        (sent, done): (u64, u64),
    ) -> Option<V> {
        match result {
            Ok(value) => {
                watch.record_step(step.id(), Status::Ok, sent, done);
                Some(value)
            }
            Err(error) => {
                let status = error.status();
                watch.record_step(step.id(), status, sent, done);
                self.task.failures.keep_message(step.id(), status, || Some(error.to_string()));
                self.file.failed.get_or_insert(status);
                self.attempted = true;
                None
            }
        }
    }

    /// Opens the file of an operation.
    async fn begin_file<T: Timer>(&mut self, operation: &FileOperation, watch: &Stopwatch<'_, T>) {
        let task = self.task;
        let spec = &task.work.workload.spec;
        let mut path = std::mem::take(&mut self.file.path);
        task.work.workload.path_of(&self.session.base, operation.file, &mut path);
        let start = watch.sent_ns;
        task.work.log.begin_file(start, task.to_unix_ns);
        self.file = Current { path, is_open: true, ..Current::default() };
        let codec = spec.compression.filter(|_| F::KEEPS);
        if spec.action == Action::Write {
            self.file.content = Some(self.own_content());
            self.file.encoder = codec.map(Encoder::new);
        } else {
            self.file.decoder = codec.map(Decoder::new);
        }
        let create = CreateOptions {
            replication: spec.replication,
            block_bytes: spec.block_bytes,
            // A random write only overwrites parts of the file.
            overwrite: spec.access == Access::Sequential,
            parents: true,
            buffer_bytes: spec.buffer_bytes as usize,
            file_bytes: Some(spec.file_bytes),
            sync_blocks: matches!(spec.sync, Sync::Close | Sync::Buffer),
        };
        let reading = if spec.access == Access::Sequential { Reading::Sequential } else { Reading::Random };
        let open = OpenOptions { access: reading, buffer_bytes: spec.buffer_bytes as usize };
        let system = &self.session.system;
        let opened = match (spec.action, spec.access) {
            (Action::Write, Access::Random) => match system.append(&self.file.path, &create).await {
                Err(error) if error.kind == FsErrorKind::NotFound => {
                    system.create(&self.file.path, &create).await.map(Handle::Writer)
                }
                other => other.map(Handle::Writer),
            },
            (Action::Write, _) => system.create(&self.file.path, &create).await.map(Handle::Writer),
            (Action::Append, _) => {
                match open_append(system, &self.file.path, &create, open, self.own_content()).await {
                    Ok((writer, content)) => {
                        self.file.base = writer.position();
                        self.file.content = Some(content);
                        Ok(Handle::Writer(writer))
                    }
                    Err(error) => Err(error),
                }
            }
            (Action::Read, _) => system.open(&self.file.path, open).await.map(Handle::Reader),
            (Action::Truncate, _) => return self.file.times.opened = watch.now_ns(),
        };
        let now = watch.now_ns();
        self.file.times.opened = now;
        self.handle = self.time_step(FileStep::Open, opened, watch, (start, now));
        if let Some(Handle::Reader(reader)) = &mut self.handle {
            let ahead = if spec.compression.is_some() { 0 } else { reader.depth() as u64 };
            for part in 0..task.work.workload.parts().min(ahead) {
                let next = task.work.workload.operation(operation.file, part);
                reader.announce_read(next.offset, next.bytes as usize);
            }
        }
    }

    /// Reads or writes the bytes of an operation, or truncates the file. Returns the number of bytes.
    async fn transfer_part<T: Timer>(&mut self, operation: &FileOperation, watch: &Stopwatch<'_, T>) -> u64 {
        if self.task.work.workload.spec.action == Action::Truncate {
            return self.truncate_file(watch).await;
        }
        if operation.bytes == 0 {
            return 0;
        }
        let transferred = match self.handle.take() {
            Some(Handle::Reader(mut reader)) => {
                let transferred = self.read_part(&mut reader, operation, watch).await;
                self.handle = Some(Handle::Reader(reader));
                transferred
            }
            Some(Handle::Writer(mut writer)) => {
                let transferred = self.write_part(&mut writer, operation, watch).await;
                self.handle = Some(Handle::Writer(writer));
                transferred
            }
            None => 0,
        };
        self.file.bytes += transferred;
        self.task.work.log.add_bytes(transferred);
        transferred
    }

    async fn read_part<T: Timer>(
        &mut self,
        reader: &mut F::Reader,
        operation: &FileOperation,
        watch: &Stopwatch<'_, T>,
    ) -> u64 {
        let sent = if operation.part == 0 { self.file.times.opened } else { watch.sent_ns };
        let len = operation.bytes as usize;
        let mut decoder = self.file.decoder.take();
        let compressed = decoder.is_some();
        let fetched = match &mut decoder {
            None => reader.fetch_bytes(operation.offset, len).await,
            Some(decoder) => decode_part(reader, decoder, &self.file.path, len).await,
        };
        let done = watch.now_ns();
        let fetched = match fetched {
            Ok(read) if read.len() < len => Err(early_end(&self.file.path, operation, read.len())),
            other => other,
        };
        let Some(read) = self.time_step(FileStep::Read, fetched, watch, (sent, done)) else { return 0 };
        self.file.times.returned = done;
        if self.task.work.workload.spec.verify {
            if F::KEEPS && self.file.content.is_none() {
                self.file.content = Content::from_part(operation.offset, read);
                if self.file.content.is_none() {
                    self.file.unmarked = self.file.unmarked.or_else(|| Content::first_unmarked(operation.offset, read));
                } else if let Some(difference) = self.file.unmarked {
                    // Loadstone wrote the file, so a missing mark means wrong content.
                    self.note_difference(difference);
                }
            }
            if self.file.content.is_none() {
                self.file.uncompared += read.len() as u64;
            }
            if let Some(content) = self.file.content {
                let difference = content.find_difference(operation.file, operation.offset, read);
                let verified = watch.now_ns();
                let status = if difference.is_some() { Status::UnexpectedState } else { Status::Ok };
                watch.record_step(FileStep::Verify.id(), status, done, verified);
                if let Some(difference) = difference {
                    self.note_difference(difference);
                }
            }
        }
        self.file.decoder = decoder;
        let depth = reader.depth() as u64;
        if !compressed && operation.part + depth < self.task.work.workload.parts() {
            let next = self.task.work.workload.operation(operation.file, operation.part + depth);
            reader.announce_read(next.offset, next.bytes as usize);
        }
        operation.bytes
    }

    /// Reports a byte that differs from the byte written.
    #[cold]
    fn note_difference(&mut self, difference: Difference) {
        self.file.wrong = true;
        self.task.work.log.add_difference(&self.file.path, difference);
        self.task.failures.keep_message(FileStep::Verify.id(), Status::UnexpectedState, || {
            Some(format!(
                "{} at byte {}: found {:#04x}, expected {:#04x}",
                self.file.path, difference.offset, difference.actual, difference.expected
            ))
        });
    }

    async fn write_part<T: Timer>(
        &mut self,
        writer: &mut F::Writer,
        operation: &FileOperation,
        watch: &Stopwatch<'_, T>,
    ) -> u64 {
        let sent = if operation.part == 0 { self.file.times.opened } else { watch.sent_ns };
        let at = self.file.base + operation.offset;
        let content = self.file.content.unwrap_or(self.own_content());
        let compressed = self.file.encoder.is_some();
        let sought = if compressed || writer.position() == at { Ok(()) } else { writer.seek_to(at).await };
        let (mut from, mut until) = (sent, sent);
        let written = match sought {
            Ok(()) if compressed => {
                from = watch.now_ns();
                self.plain.resize(operation.bytes as usize, 0);
                content.fill(operation.file, at, &mut self.plain);
                until = watch.now_ns();
                self.encode_part(writer, false).await
            }
            Ok(()) => match writer.reserve_buffer(operation.bytes as usize).await {
                Ok(buffer) => {
                    from = watch.now_ns();
                    content.fill(operation.file, at, buffer);
                    until = watch.now_ns();
                    writer.submit_buffer().await
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let written = match written {
            // The lost part of a compressed file cannot be calculated from the offset.
            written if compressed => written,
            written => self.rewrite_lost(writer, written, (operation.file, content, at + operation.bytes)).await,
        };
        let done = watch.now_ns();
        watch.record_step(FileStep::Generate.id(), Status::Ok, from, until);
        // The time for generating the content is not part of the write.
        let Some(()) = self.time_step(FileStep::Write, written, watch, (sent + (until - from), done)) else { return 0 };
        self.file.times.returned = done;
        if self.task.work.workload.spec.sync == Sync::Buffer {
            self.sync_file(writer, (operation.file, Sync::Buffer), watch).await;
        }
        operation.bytes
    }

    /// Encodes the content in `plain`, or the end of the file, and writes the result.
    async fn encode_part(&mut self, writer: &mut F::Writer, end: bool) -> Result<(), FsError> {
        let stored = match self.file.encoder.take() {
            None => return Ok(()),
            Some(encoder) if end => encoder.finish(),
            Some(mut encoder) => {
                let stored = encoder.encode(&self.plain);
                self.file.encoder = Some(encoder);
                stored
            }
        };
        let stored = stored.map_err(|error| FsError::io("compress", &self.file.path, &error))?;
        for part in stored.chunks(self.task.work.workload.spec.buffer_bytes as usize) {
            writer.write_copy(part).await?;
        }
        Ok(())
    }

    async fn truncate_file<T: Timer>(&mut self, watch: &Stopwatch<'_, T>) -> u64 {
        let sent = watch.now_ns();
        let left = self.task.work.workload.spec.file_bytes;
        let system = &self.session.system;
        let cut = match system.read_stat(&self.file.path).await {
            Ok(status) if status.bytes < left => Err(FsError::new(
                FsErrorKind::Invalid,
                "truncate",
                &self.file.path,
                format!("it has {} bytes, fewer than {left}", status.bytes),
            )),
            Ok(status) => system.truncate(&self.file.path, left).await.map(|()| status.bytes - left),
            Err(error) => Err(error),
        };
        let done = watch.now_ns();
        self.file.times.returned = done;
        let cut = self.time_step(FileStep::Truncate, cut, watch, (sent, done)).unwrap_or(0);
        self.file.bytes += cut;
        cut
    }
}

/// Reads and decompresses until the decoder has `len` bytes, or until the file ends.
async fn decode_part<'d, R: Reader>(
    reader: &mut R,
    decoder: &'d mut Decoder,
    path: &str,
    len: usize,
) -> Result<&'d [u8], FsError> {
    let failed = |at, error: std::io::Error| {
        FsError::new(FsErrorKind::Corrupt, "decompress", path, error.to_string()).with_offset(at)
    };
    let mut at = decoder.at;
    while !decoder.decode_chunk(&[], len).map_err(|error| failed(at, error))? {
        at = decoder.at;
        let part = reader.fetch_bytes(at, len).await?;
        if part.is_empty() {
            break;
        }
        decoder.decode_chunk(part, len).map_err(|error| failed(at, error))?;
    }
    Ok(decoder.take_output(len))
}

/// Opens a file for appending. Returns the file's writer and the content to append, which continues the existing
/// content if Loadstone wrote the file.
async fn open_append<F: FileSystem>(
    system: &F,
    path: &str,
    create: &CreateOptions,
    open: OpenOptions,
    own: Content,
) -> Result<(F::Writer, Content), FsError> {
    let content = {
        let mut reader = system.open(path, open).await?;
        let bytes = open.buffer_bytes.min(16_384);
        Content::from_part(0, reader.fetch_bytes(0, bytes).await?).unwrap_or(own)
    };
    Ok((system.append(path, create).await?, content))
}

#[cold]
fn early_end(path: &str, operation: &FileOperation, read: usize) -> FsError {
    let end = operation.offset + read as u64;
    let expected = operation.offset + operation.bytes;
    FsError::new(
        FsErrorKind::Corrupt,
        "read",
        path,
        format!("the file ends there, {} bytes before the expected end of the read at {expected}", expected - end),
    )
    .with_offset(end)
}

impl<F: FileSystem> Actor for FileActor<'_, F> {
    type Operation = FileOperation;

    async fn perform_operation<T: Timer>(&mut self, operation: &FileOperation, watch: &Stopwatch<'_, T>) -> Outcome {
        self.attempted = false;
        if operation.part == 0 {
            self.begin_file(operation, watch).await;
        }
        let wrong = std::mem::take(&mut self.file.wrong);
        let bytes = if self.file.failed.is_none() { self.transfer_part(operation, watch).await } else { 0 };
        let status = if self.file.wrong { Status::UnexpectedState } else { Status::Ok };
        self.file.wrong |= wrong;
        if operation.last {
            self.finish_file(operation.file, watch).await;
        }
        let status = worse_status(self.file.failed.unwrap_or(Status::Ok), status);
        Outcome { status, done_ns: watch.now_ns(), rows: u64::from(bytes > 0), bytes }
    }

    fn is_unsent(&self) -> bool {
        false
    }

    async fn pause(&mut self) {
        // An operation that was not attempted put no load on the system.
        if self.attempted {
            self.session.pause().await;
        }
    }

    async fn close(&mut self) -> (StepId, Status) {
        let mut status = Status::Ok;
        match self.handle.take() {
            Some(Handle::Writer(writer)) => {
                self.task.work.log.add_retries(writer.retry_count());
                if let Err(error) = writer.close().await {
                    status = error.status();
                    self.task.failures.keep_message(FileStep::Cleanup.id(), status, || Some(error.to_string()));
                }
            }
            Some(Handle::Reader(reader)) => self.task.work.log.add_retries(reader.retry_count()),
            None => {}
        }
        if self.file.is_open {
            self.note_end(FileEnd::Unfinished);
        }
        (FileStep::Cleanup.id(), worse_status(status, self.session.cleanup().await))
    }
}
