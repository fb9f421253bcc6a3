//! Sequences of rows from files, read ahead of their use.

use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use crate::fs::{ALIGNMENT, AlignedBuffer};
use crate::sort::SortError;
use crate::sort::files::{ReadAt, read_exactly};
use crate::sort::progress::Progress;
use crate::sort::rows::ROW_BYTES;

/// Number of buffers per sequence: one in use, and one being filled.
pub const BUFFERS: usize = 2;

/// An open file that several requests may share.
pub type Shared = Arc<Mutex<Box<dyn ReadAt>>>;

/// A full buffer, and how many of its bytes belong to rows.
type BlockAnswer = Result<(AlignedBuffer, usize), SortError>;

/// A read for which a cursor waits.
pub struct BlockRequest {
    file: Shared,
    path: Arc<str>,
    offset: u64,
    bytes: usize,
    buffer: AlignedBuffer,
    answer: SyncSender<BlockAnswer>,
}

/// Serves requests until all senders are dropped. Several threads may call this function at the same time.
pub fn serve_requests(requests: &Mutex<Receiver<BlockRequest>>, progress: &Progress) {
    loop {
        let next = requests.lock().ok().and_then(|requests| requests.recv().ok());
        let Some(BlockRequest { file, path, offset, bytes, mut buffer, answer }) = next else { return };
        let room = bytes.next_multiple_of(ALIGNMENT);
        let read = match file.lock() {
            Ok(mut file) => read_exactly(&mut **file, &path, &mut buffer[..room], offset, bytes),
            Err(_) => Err(SortError::new("internal error: a reading thread panicked")),
        };
        // There is no receiver if the merge has failed in the meantime.
        let _ = answer.send(read.and_then(|()| progress.read(bytes)).map(|()| (buffer, bytes)));
    }
}

/// The place where a sequence's rows are stored.
pub struct Source {
    /// The file.
    pub file: Shared,
    /// The file's path.
    pub path: Arc<str>,
    /// The offset of the first row, at the start of a block.
    pub offset: u64,
    /// Number of rows.
    pub rows: u64,
}

/// The rows of a source, in order.
pub struct RowCursor {
    source: Source,
    requests: Sender<BlockRequest>,
    /// The pending answers. Each has a separate channel, so that a panic of a reader is noticed.
    answers: [Option<Receiver<BlockAnswer>>; BUFFERS],
    /// The index of the answer that is received next.
    turn: usize,
    /// Number of rows requested.
    requested: u64,
    current: Option<AlignedBuffer>,
    /// The start of the current row (`at`) and the end of the rows (`end`) in `current`.
    at: usize,
    end: usize,
}

impl RowCursor {
    /// Starts to read into these buffers. Their lengths must be equal, and a multiple of both the row size and the
    /// block size.
    pub fn open(
        source: Source,
        requests: Sender<BlockRequest>,
        buffers: [AlignedBuffer; BUFFERS],
    ) -> Result<Self, SortError> {
        let mut cursor =
            Self { source, requests, answers: [None, None], turn: 0, requested: 0, current: None, at: 0, end: 0 };
        for buffer in buffers {
            cursor.request_block(buffer)?;
            cursor.turn = (cursor.turn + 1) % BUFFERS;
        }
        cursor.refill_buffer()?;
        Ok(cursor)
    }

    fn request_block(&mut self, buffer: AlignedBuffer) -> Result<(), SortError> {
        let rows = (self.source.rows - self.requested).min((buffer.len() / ROW_BYTES) as u64);
        let (answer, answered) = sync_channel(1);
        self.answers[self.turn] = Some(answered);
        if rows == 0 {
            // An empty answer marks the end of the rows, and returns the buffer.
            return answer.send(Ok((buffer, 0))).map_err(|_| SortError::stop());
        }
        let request = BlockRequest {
            file: Arc::clone(&self.source.file),
            path: Arc::clone(&self.source.path),
            offset: self.source.offset + self.requested * ROW_BYTES as u64,
            bytes: rows as usize * ROW_BYTES,
            buffer,
            answer,
        };
        self.requested += rows;
        self.requests.send(request).map_err(|_| SortError::stop())
    }

    fn refill_buffer(&mut self) -> Result<(), SortError> {
        if let Some(used) = self.current.take() {
            let turn = self.turn;
            self.turn = (turn + BUFFERS - 1) % BUFFERS;
            self.request_block(used)?;
            self.turn = turn;
        }
        let answer = self.answers[self.turn].take().and_then(|answer| answer.recv().ok());
        let (buffer, bytes) =
            answer.unwrap_or_else(|| Err(SortError::new("internal error: a reading thread panicked")))?;
        self.turn = (self.turn + 1) % BUFFERS;
        (self.current, self.at, self.end) = (Some(buffer), 0, bytes);
        Ok(())
    }

    /// The current row; `None` at the end.
    #[inline]
    pub fn row(&self) -> Option<&[u8; ROW_BYTES]> {
        if self.at == self.end {
            return None;
        }
        self.current.as_ref().and_then(|buffer| buffer[self.at..].first_chunk())
    }

    /// Advances to the next row.
    #[inline]
    pub fn advance_row(&mut self) -> Result<(), SortError> {
        self.at += ROW_BYTES;
        if self.at < self.end { Ok(()) } else { self.refill_buffer() }
    }

    /// Returns the buffers; called at the end.
    pub fn close(mut self) -> Vec<AlignedBuffer> {
        let mut buffers: Vec<AlignedBuffer> = self.current.take().into_iter().collect();
        let waiting = self.answers.iter_mut().filter_map(Option::take);
        buffers.extend(waiting.filter_map(|answer| answer.recv().ok()).flatten().map(|(buffer, _)| buffer));
        buffers
    }
}
