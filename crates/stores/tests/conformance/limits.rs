//! Tests of individual stores' limits, refusals and error messages.

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::fjall::FjallEngine;
use loadstone_stores::key_value::KeyValue;
use loadstone_stores::lmdb::LmdbEngine;
use loadstone_stores::redb::RedbEngine;
use loadstone_stores::{Connection, Durability, Store};

use crate::subject::{Calls, Place, Subject, open, row, try_open};

const fn subject(name: &'static str, directory: &'static str) -> Subject {
    Subject { name, directory, properties: &[] }
}

const LMDB: Subject = subject("lmdb", "lmdb.dir");
const FJALL: Subject = subject("fjall", "fjall.dir");
const REDB: Subject = subject("redb", "redb.dir");

fn with(mut place: Place, property: &str, value: &str) -> Place {
    place.options.properties.insert(property.to_owned(), value.to_owned());
    place
}

#[test]
fn full_lmdb_map_is_no_space() {
    for durability in [Durability::None, Durability::Os, Durability::Device] {
        let mut place = with(LMDB.place(), "lmdb.mapsize", "1M");
        place.options.durability = durability;
        let store = open::<LmdbEngine>(&place.options);
        let mut session = store.session().unwrap();
        let mut value = Row::default();
        value.push_field(b"field0", &[b'v'; 1_000]);
        let key = |n: usize| format!("user{n:04}").into_bytes();
        let fitted =
            (0..2_000).find(|&n| session.insert_row(&key(n), &value) != Status::Ok).expect("an end of the map");
        assert!(fitted > 100, "{fitted} of {durability:?}");
        assert_eq!(session.insert_row(&key(fitted), &value), Status::NoSpace);
        let message = session.last_error().unwrap();
        assert!(session.is_refusal(Status::NoSpace), "the transaction was aborted");
        assert_eq!(session.read_row(&key(fitted), Projection::All).0, Status::NotFound);
        assert!(message.contains("MDB_MAP_FULL") && message.contains("lmdb.mapsize above 1048576"), "{message}");
        for n in 0..fitted {
            assert_eq!(session.read_row(&key(n), Projection::All).0, Status::Ok, "what was acknowledged is there");
        }
        drop(session);
        store.close().unwrap();

        // When the map is enlarged, records can be added after the records that filled the smaller map.
        let place = with(place, "lmdb.mapsize", "2M");
        let store = open::<LmdbEngine>(&place.options);
        let mut session = store.session().unwrap();
        assert_eq!(session.insert_row(&key(fitted), &value), Status::Ok);
        assert_eq!(session.scan_rows(b"", 2_000).1.len(), fitted + 1);
    }
}

#[test]
fn lmdb_keys_have_at_most_511_bytes() {
    let mut opened = LMDB.open::<LmdbEngine>();
    assert_eq!(opened.session.insert_row(&[b'k'; 511], &row(&[("a", "1")])), Status::Ok);
    assert_eq!(opened.session.read_row(&[b'k'; 511], Projection::All).0, Status::Ok);
    assert_eq!(opened.session.insert_row(&[b'k'; 512], &row(&[("a", "1")])), Status::BadRequest);
    assert_eq!(opened.session.last_error().unwrap(), "LMDB takes keys of 1 to 511 bytes, not 512");
}

#[test]
fn lmdb_has_a_reader_slot_for_every_client() {
    let mut place = LMDB.place();
    place.options.clients = 300;
    let store = open::<LmdbEngine>(&place.options);
    // A thread occupies its slot until the thread ends, so all slots are in use at the same time.
    let together = std::sync::Barrier::new(place.options.clients);
    std::thread::scope(|threads| {
        let read = || {
            let read = store.session().unwrap().read_row(b"user1", Projection::All);
            together.wait();
            assert_eq!(read.0, Status::NotFound);
        };
        let clients: Vec<_> = (0..place.options.clients).map(|_| threads.spawn(read)).collect();
        // At its end, a thread releases its slot in the lock file's map. A scope waits for closures, not for the end of
        // their threads, and would close the store too early.
        for client in clients {
            client.join().expect("a client without a panic");
        }
    });
}

#[test]
fn impossible_sizes_and_names_are_wrong_usage() {
    let refused = |error: Option<loadstone_stores::EngineError>, word: &str| {
        let error = error.expect("a refusal");
        assert!(error.is_usage() && error.message.contains(word) && error.hint.is_some(), "{error:?}");
    };
    for size in ["many", "1.5G", "99999999T", "18446744073709551615"] {
        refused(try_open::<LmdbEngine>(&with(LMDB.place(), "lmdb.mapsize", size).options).err(), "lmdb.mapsize");
    }
    refused(try_open::<FjallEngine>(&with(FJALL.place(), "fjall.cachesize", "-1").options).err(), "fjall.cachesize");
    refused(try_open::<RedbEngine>(&with(REDB.place(), "redb.cachesize", "x").options).err(), "redb.cachesize");
    let mut place = FJALL.place();
    place.options.table = "t".repeat(256);
    refused(try_open::<FjallEngine>(&place.options).err(), "255");
}

fn a_run_needs_its_table<K: KeyValue>(subject: &Subject) {
    let mut place = subject.open::<K>().close();
    place.options.create = false;
    "misspelt".clone_into(&mut place.options.table);
    let error = try_open::<K>(&place.options).expect_err("a table that was not loaded");
    assert!(error.message.starts_with("no table \"misspelt\" in the "), "{error}");
    assert!(error.hint.unwrap_or_default().starts_with("load one first"));
    // The failed attempt did not create the table.
    assert!(try_open::<K>(&place.options).is_err());
    "usertable".clone_into(&mut place.options.table);
    open::<K>(&place.options).close().expect("a clean close");
}

#[test]
fn a_run_with_a_misspelt_table_is_refused() {
    a_run_needs_its_table::<LmdbEngine>(&LMDB);
    a_run_needs_its_table::<FjallEngine>(&FJALL);
    a_run_needs_its_table::<RedbEngine>(&REDB);
}

#[test]
fn caches_are_as_large_as_asked() {
    let cached = |facts: Vec<(String, String)>| facts.into_iter().find(|(name, _)| name == "cache_bytes").unwrap().1;
    let place = with(FJALL.place(), "fjall.cachesize", "3M");
    assert_eq!(cached(open::<FjallEngine>(&place.options).guarantee().facts), "3145728");
    let place = with(REDB.place(), "redb.cachesize", "3M");
    assert_eq!(cached(open::<RedbEngine>(&place.options).guarantee().facts), "3145728");
}
