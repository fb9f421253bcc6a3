//! The end of a file: syncing it, rewriting bytes that the file system lost, and closing it.

use loadstone_load::Status;
use loadstone_storage::content::Content;
use loadstone_storage::file_operations::{FileStep, Sync};
use loadstone_storage::fs::{FileSystem, FsError, FsErrorKind, Reader, Writer};

use super::{FileActor, Handle};
use crate::files::log::{Compared, FileEnd};
use loadstone_measure::actor::Stopwatch;
use loadstone_measure::clock::Timer;

/// Maximum number of times that the end of a file may be lost and rewritten.
const REWINDS_MAX: u32 = 8;
/// Maximum time for closing a file, including rewrites of its end, ns.
const COMPLETE_NS: u64 = 120_000_000_000;

impl<F: FileSystem> FileActor<'_, F> {
    /// Rewrites the part of a file that the file system lost, up to `end`, at most `REWINDS_MAX` times. The content is
    /// calculated from the offset.
    pub(super) async fn rewrite_lost(
        &self,
        writer: &mut F::Writer,
        mut written: Result<(), FsError>,
        (file, content, end): (u64, Content, u64),
    ) -> Result<(), FsError> {
        for _ in 0..REWINDS_MAX {
            match &written {
                Err(error) if error.kind == FsErrorKind::Rewound => {}
                _ => break,
            }
            written = Ok(());
            while written.is_ok() && writer.position() < end {
                let at = writer.position();
                let bytes = self.task.work.workload.spec.buffer_bytes.min(end - at);
                written = match writer.reserve_buffer(bytes as usize).await {
                    Ok(buffer) => {
                        content.fill(file, at, buffer);
                        writer.submit_buffer().await
                    }
                    Err(error) => Err(error),
                };
            }
        }
        written
    }

    /// Flushes or syncs a file unless it has failed. Bytes that the file system loses in this step are rewritten.
    pub(super) async fn sync_file<T: Timer>(
        &mut self,
        writer: &mut F::Writer,
        (file, sync): (u64, Sync),
        watch: &Stopwatch<'_, T>,
    ) {
        if self.file.failed.is_some() || sync == Sync::None {
            return;
        }
        let sent = watch.now_ns();
        let (content, end) = (self.file.content.unwrap_or(self.own_content()), writer.position());
        let step = if sync == Sync::Flush { FileStep::Flush } else { FileStep::Sync };
        let mut rewinds = 0;
        let result = loop {
            let result = if step == FileStep::Flush { writer.flush().await } else { writer.sync().await };
            let lost = matches!(&result, Err(error) if error.kind == FsErrorKind::Rewound);
            // The lost part of a compressed file cannot be calculated from the offset.
            if !lost || rewinds == REWINDS_MAX || self.task.work.workload.spec.compression.is_some() {
                break result;
            }
            rewinds += 1;
            if let Err(error) = self.rewrite_lost(writer, result, (file, content, end)).await {
                break Err(error);
            }
        };
        let now = watch.now_ns();
        if self.time_step(step, result, watch, (sent, now)).is_some() {
            let times = &mut self.file.times;
            *(if step == FileStep::Flush { &mut times.flushed } else { &mut times.durable }) = now;
        }
    }

    /// Finishes the file: syncs it as requested by the spec, closes it, and logs its outcome.
    pub(super) async fn finish_file<T: Timer>(&mut self, file: u64, watch: &Stopwatch<'_, T>) {
        match self.handle.take() {
            Some(Handle::Writer(mut writer)) => {
                let sync = self.task.work.workload.spec.sync;
                let compressed = self.file.encoder.is_some();
                if self.file.failed.is_none() && compressed {
                    let sent = watch.now_ns();
                    let written = self.encode_part(&mut writer, true).await;
                    let now = watch.now_ns();
                    self.time_step(FileStep::Write, written, watch, (sent, now));
                    self.file.times.returned = now;
                }
                // With `Buffer`, all buffers were already synced.
                self.sync_file(&mut writer, (file, if sync == Sync::Buffer { Sync::None } else { sync }), watch).await;
                let sent = watch.now_ns();
                let (content, end) = (self.file.content.unwrap_or(self.own_content()), writer.position());
                let mut complete = writer.complete_file().await;
                while !compressed
                    && matches!(&complete, Err(error) if error.kind == FsErrorKind::Rewound)
                    && self.file.failed.is_none()
                {
                    complete = match self.rewrite_lost(&mut writer, complete, (file, content, end)).await {
                        Ok(()) => {
                            // Rewritten bytes have no guarantee yet.
                            self.sync_file(&mut writer, (file, sync), watch).await;
                            writer.complete_file().await
                        }
                        failed => failed,
                    };
                    if watch.now_ns().saturating_sub(sent) > COMPLETE_NS {
                        break;
                    }
                }
                self.task.work.log.add_retries(writer.retry_count());
                let closed = writer.close().await;
                self.time_step(FileStep::Close, complete.and(closed), watch, (sent, watch.now_ns()));
            }
            Some(Handle::Reader(reader)) => {
                let sent = watch.now_ns();
                self.task.work.log.add_retries(reader.retry_count());
                drop(reader);
                watch.record_step(FileStep::Close.id(), Status::Ok, sent, watch.now_ns());
            }
            None => {}
        }
        self.file.times.closed = watch.now_ns();
        let end = if self.file.failed.is_some() || self.file.wrong { FileEnd::Failed } else { FileEnd::Done };
        self.note_end(end);
    }

    pub(super) fn note_end(&mut self, end: FileEnd) {
        let compared = match self.file.content {
            _ if self.file.uncompared == 0 => Compared::Whole,
            None if self.file.unmarked.is_some() => {
                self.task.work.log.note_foreign(&self.file.path);
                Compared::Foreign
            }
            _ => Compared::Part,
        };
        self.task.work.log.add_file(end, self.file.bytes, compared, &self.file.times, self.task.to_unix_ns);
        self.file.is_open = false;
    }
}
