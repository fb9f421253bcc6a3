//! `null`: a store that does nothing, to measure ourselves. Every value is built and looked at, nothing is kept.

use std::hint::black_box;

use loadstone_load::{Row, Status, Wanted};

use crate::about::About;
use crate::error::StoreError;
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::session::{Drive, Rows, Session, Store};

/// The store that does nothing.
#[derive(Debug)]
pub struct Null;

/// A client of it.
#[derive(Debug)]
pub struct NullSession;

impl Store for Null {
    type Session = NullSession;
    const ABOUT: About =
        About { name: "null", line: "keeps nothing, to measure the driver", networked: false, properties: &[] };
    const DRIVE: Drive = Drive::Either;

    fn open(_options: &Options) -> Result<Self, StoreError> {
        Ok(Self)
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::new(crate::Durability::None, "keeps nothing").fact("data_in", "memory")
    }

    fn session(&self) -> Result<Self::Session, StoreError> {
        Ok(NullSession)
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Session for NullSession {
    #[inline]
    async fn read(&mut self, key: &[u8], _wanted: Wanted<'_>, row: &mut Row) -> Status {
        row.clear();
        black_box(key);
        Status::Ok
    }

    #[inline]
    async fn scan(&mut self, key: &[u8], count: usize, _wanted: Wanted<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        black_box((key, count));
        Status::Ok
    }

    #[inline]
    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        black_box((key, row.bytes()));
        Status::Ok
    }

    #[inline]
    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        black_box((key, row.bytes()));
        Status::Ok
    }

    #[inline]
    async fn delete(&mut self, key: &[u8]) -> Status {
        black_box(key);
        Status::Ok
    }

    fn last_error(&mut self) -> Option<String> {
        None
    }
}
