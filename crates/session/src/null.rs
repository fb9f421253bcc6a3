//! `null`: a store that does nothing, to measure the engine itself. Every value is built and read, but nothing is
//! stored.

use std::future::{Future, ready};
use std::hint::black_box;
use std::time::{Duration, Instant};

use loadstone_load::{Projection, Row, Status};

use crate::about::{About, setting};
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::session::{Connection, Drive, Rows, Session, Store};

/// The maximum delay, µs.
const DELAY_US_MAX: u64 = 1_000_000;

/// The store that does nothing.
#[derive(Debug)]
pub struct Null {
    delay: Option<Duration>,
}

/// A client of the null store.
#[derive(Debug, Default)]
pub struct NullSession {
    delay: Option<Duration>,
}

impl NullSession {
    /// Keeps the processor busy for the delay. It does not sleep, because a sleep may last up to 0.1 ms too long.
    #[inline]
    fn answer(&self) -> Status {
        if let Some(delay) = self.delay {
            let start = Instant::now();
            while start.elapsed() < delay {
                std::hint::spin_loop();
            }
        }
        Status::Ok
    }
}

impl Store for Null {
    type Session = NullSession;
    const ABOUT: About = About {
        name: "null",
        line: "keeps nothing; for measuring the driver's own cost",
        networked: false,
        properties: &[setting("null.delay")],
    };
    const DRIVE: Drive = Drive::Either;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let Some(text) = options.get("null.delay") else { return Ok(Self { delay: None }) };
        match text.parse() {
            Ok(us @ 0..=DELAY_US_MAX) => Ok(Self { delay: (us > 0).then(|| Duration::from_micros(us)) }),
            _ => Err(EngineError::usage(format!(
                "null.delay must be microseconds from 0 to {DELAY_US_MAX}, got \"{text}\""
            ))
            .hint("write null.delay=10")),
        }
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::new(crate::Durability::None, "keeps nothing").fact("data_in", "memory")
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(NullSession { delay: self.delay })
    }
}

impl Connection for NullSession {}

// These functions are not `async`, because their futures would store the arguments in memory for each client.
impl Session for NullSession {
    #[inline]
    fn read(&mut self, key: &[u8], _projection: Projection<'_>, row: &mut Row) -> impl Future<Output = Status> {
        row.clear_fields();
        black_box(key);
        ready(self.answer())
    }

    #[inline]
    fn scan(
        &mut self,
        key: &[u8],
        count: usize,
        _projection: Projection<'_>,
        rows: &mut Rows,
    ) -> impl Future<Output = Status> {
        rows.clear();
        black_box((key, count));
        ready(self.answer())
    }

    #[inline]
    fn insert(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status> {
        black_box((key, row.bytes()));
        ready(self.answer())
    }

    #[inline]
    fn update(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status> {
        black_box((key, row.bytes()));
        ready(self.answer())
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> impl Future<Output = Status> {
        black_box(key);
        ready(self.answer())
    }
}
