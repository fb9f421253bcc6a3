//! Tests of writing, reading, merging, scanning and deleting records, and of size limits and large numbers of records.

use std::time::Instant;

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::hse::{Hse, KEY_LEN_MAX, VALUE_LEN_MAX};
use loadstone_stores::{Connection, Durability, Rows, Session, Store};

use crate::bench::{Bench, now, row};
use crate::hse_fake;

#[test]
fn records_go_round() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let written = row(&[("field0", b"one"), ("field1", b"\0\xff"), ("field2", b"")]);
    assert_eq!(now(session.insert(b"user1", &written)), Status::Ok);

    let mut read = Row::default();
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok);
    assert_eq!(read, written);
    assert_eq!(now(session.read(b"user1", Projection::One(b"field1"), &mut read)), Status::Ok);
    assert_eq!(read, row(&[("field1", b"\0\xff")]));

    assert_eq!(now(session.insert(b"user1", &row(&[("field0", b"new")]))), Status::Ok);
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok);
    assert_eq!(read, row(&[("field0", b"new")]));

    assert_eq!(now(session.delete(b"user1")), Status::Ok);
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::NotFound);
    drop(session);
    store.close().unwrap();
}

#[test]
fn what_is_missing_is_not_found() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let mut read = row(&[("left", b"over")]);
    assert_eq!(now(session.read(b"missing", Projection::All, &mut read)), Status::NotFound);
    assert!(read.is_empty());
    assert_eq!(session.last_error().unwrap(), "no record with key missing");
    assert_eq!(now(session.update(b"missing", &row(&[("field0", b"x")]))), Status::NotFound);
    assert_eq!(now(session.delete(b"missing")), Status::Ok);
}

#[test]
fn an_update_merges() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    now(session.insert(b"user1", &row(&[("field0", b"a"), ("field1", b"b"), ("field2", b"c")])));
    assert_eq!(now(session.update(b"user1", &row(&[("field1", b"longer than before")]))), Status::Ok);
    let mut read = Row::default();
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok);
    assert_eq!(read.find_field(b"field0"), Some(&b"a"[..]));
    assert_eq!(read.find_field(b"field1"), Some(&b"longer than before"[..]));
    assert_eq!(read.find_field(b"field2"), Some(&b"c"[..]));
}

#[test]
fn scans_go_in_byte_order_to_the_end() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let keys: [&[u8]; 7] = [b"a", b"a\0", b"ab", b"b", b"user10", b"user9", b"\xff\xfe"];
    for key in keys.iter().rev() {
        now(session.insert(key, &row(&[("key", key)])));
    }
    now(session.delete(b"b"));
    let mut rows = Rows::default();
    let mut scan = |from: &[u8], count| {
        assert_eq!(now(session.scan(from, count, Projection::All, &mut rows)), Status::Ok);
        for (key, row) in rows.iter() {
            assert_eq!(row.find_field(b"key"), Some(key));
        }
        rows.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(scan(b"a", 2), [&b"a"[..], b"a\0"]);
    assert_eq!(scan(b"aa", 2), [&b"ab"[..], b"user10"], "from a missing key, over a deleted key");
    assert_eq!(scan(b"user10", 100), [&b"user10"[..], b"user9", b"\xff\xfe"], "to the end");
    assert_eq!(scan(b"", 1), [&b"a"[..]], "from the start");
    assert!(scan(b"\xff\xff", 5).is_empty(), "past the end");
    assert!(scan(b"a", 0).is_empty());
    if let Some(cursors) = bench.calls(|call| call.starts_with("kvs_cursor_create") || call == "kvs_cursor_destroy") {
        assert_eq!(cursors.len(), 12, "each cursor is destroyed: {cursors:?}");
    }
}

#[test]
fn scan_starts_at_an_overlong_key() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    for key in [&[b'a'; KEY_LEN_MAX - 1][..], &[b'a'; KEY_LEN_MAX], b"ab"] {
        now(session.insert(key, &row(&[("field0", b"")])));
    }
    let mut rows = Rows::default();
    for len in [KEY_LEN_MAX, KEY_LEN_MAX + 1, 70_000] {
        assert_eq!(now(session.scan(&vec![b'a'; len], 1, Projection::All, &mut rows)), Status::Ok);
        let key_len = rows.iter().next().unwrap().0.len();
        assert_eq!(key_len, if len == KEY_LEN_MAX { KEY_LEN_MAX } else { 2 }, "from {len} bytes");
    }
    assert_eq!(now(session.scan(&vec![b'z'; 70_000], 1, Projection::All, &mut rows)), Status::Ok);
    assert!(rows.is_empty());
}

#[test]
fn values_of_every_size_come_back_whole() {
    // Values are tested without and with compression. They are highly compressible, so the length that HSE reports when
    // it truncates a value may not be the value's full length.
    for compression in ["off", "on"] {
        let bench = Bench::new().with("hse.kvs.rparams", &format!("value.compression.default={compression}"));
        let store = bench.open();
        let mut session = store.session().unwrap();
        let overhead = row(&[("f", b"")]).bytes().len();
        let sizes =
            [0, 1, 4_095 - overhead, 4_096 - overhead, 4_097 - overhead, 8_192, 70_000, VALUE_LEN_MAX - overhead];
        for round in 0..2 {
            // Each size is read with a buffer of the initial size, and with an enlarged buffer.
            for size in sizes {
                if round == 0 {
                    session = store.session().unwrap();
                }
                let written = row(&[("f", &vec![b'x'; size])]);
                assert_eq!(now(session.insert(b"user1", &written)), Status::Ok, "{size}");
                let mut read = Row::default();
                assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok, "{size}");
                assert!(read == written, "{size}");
            }
        }
        drop(session);
        store.close().unwrap();
    }
}

#[test]
fn an_empty_record_is_a_record() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    assert_eq!(now(session.insert(b"user1", &Row::default())), Status::Ok);
    let mut read = row(&[("left", b"over")]);
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok);
    assert!(read.is_empty());
    let mut rows = Rows::default();
    assert_eq!(now(session.scan(b"user1", 1, Projection::All, &mut rows)), Status::Ok);
    assert_eq!(rows.len(), 1);
}

#[test]
fn oversized_keys_and_values_are_bad_requests() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let small = row(&[("f", b"x")]);
    let mut read = Row::default();
    assert_eq!(now(session.insert(&[b'k'; KEY_LEN_MAX], &small)), Status::Ok);
    assert_eq!(now(session.read(&[b'k'; KEY_LEN_MAX], Projection::All, &mut read)), Status::Ok);

    let long = [b'k'; KEY_LEN_MAX + 1];
    for key in [&b""[..], &long] {
        let message = format!("HSE takes keys of 1 to 1344 bytes, not {}", key.len());
        for call in ["insert", "read", "delete"] {
            let status = match call {
                "insert" => now(session.insert(key, &small)),
                "read" => now(session.read(key, Projection::All, &mut read)),
                _ => now(session.delete(key)),
            };
            assert_eq!(status, Status::BadRequest, "{call}");
            assert_eq!(session.last_error().as_deref(), Some(message.as_str()), "{call}");
        }
    }
    let big = row(&[("f", &vec![b'x'; VALUE_LEN_MAX])]);
    assert_eq!(now(session.insert(b"user1", &big)), Status::BadRequest);
    let message = format!("HSE takes values of up to 1048576 bytes, not {}", big.bytes().len());
    assert_eq!(session.last_error(), Some(message));
    assert_eq!(now(session.insert(b"user1", &small)), Status::Ok, "the session continues");
}

#[test]
fn clients_work_side_by_side() {
    let bench = Bench::new();
    let store = bench.open();
    std::thread::scope(|scope| {
        for client in 0..4u8 {
            let store = &store;
            scope.spawn(move || {
                let mut session = store.session().unwrap();
                let (mut read, mut rows) = (Row::default(), Rows::default());
                for i in 0..200 {
                    let key = format!("user{client}-{i}");
                    let written = row(&[("field0", &[client; 100])]);
                    assert_eq!(now(session.insert(key.as_bytes(), &written)), Status::Ok);
                    assert_eq!(now(session.read(key.as_bytes(), Projection::All, &mut read)), Status::Ok);
                    assert_eq!(read, written);
                    assert_eq!(now(session.scan(key.as_bytes(), 3, Projection::All, &mut rows)), Status::Ok);
                    assert!(!rows.is_empty());
                }
            });
        }
    });
    store.close().unwrap();
}

#[test]
fn only_with_durability_each_write_is_synced() {
    for (requested, guaranteed, how, syncs) in [
        (Durability::None, Durability::None, "journal written within 100 ms; writes do not wait", false),
        (
            Durability::Os,
            Durability::Device,
            "hse_kvdb_sync at each write: journal on the device; HSE has no level between this and none",
            true,
        ),
        (Durability::Device, Durability::Device, "hse_kvdb_sync at each write: journal on the device", true),
    ] {
        let bench = Bench::new().with_durability(requested);
        let store = bench.open();
        assert_eq!((store.guarantee().durability, store.guarantee().how.as_str()), (guaranteed, how));
        let mut session = store.session().unwrap();
        let mut read = Row::default();
        now(session.insert(b"user1", &row(&[("field0", b"a")])));
        now(session.update(b"user1", &row(&[("field0", b"b")])));
        now(session.read(b"user1", Projection::All, &mut read));
        now(session.delete(b"user1"));
        drop(session);
        let Some(calls) = bench.calls(|call| {
            call.starts_with("kvs_") && call != "kvs_create" && call != "kvs_open" || call.starts_with("kvdb_sync")
        }) else {
            continue;
        };
        let mut expected = Vec::new();
        for call in ["kvs_put", "kvs_get", "kvs_put", "kvs_get", "kvs_delete"] {
            expected.push(call);
            if syncs && call != "kvs_get" {
                expected.push("kvdb_sync 0");
            }
        }
        assert_eq!(calls, expected, "{requested:?}");
        store.close().unwrap();
    }
}

/// With a real library, as many records are written as in a small measurement, so that they reach the library's caches
/// and files.
#[test]
fn many_records_come_back() {
    let on_fake = std::env::var_os(hse_fake::UNDER_TEST).is_none();
    for (durability, count) in [(Durability::None, if on_fake { 5_000 } else { 100_000 }), (Durability::Device, 200)] {
        let mut bench = Bench::new().with_durability(durability);
        let opening = Instant::now();
        let store = bench.open();
        let made_s = opening.elapsed().as_secs_f64();
        let mut session = store.session().unwrap();
        let written = row(&[("field0", &[b'x'; 1_000])]);
        let key = |i: u64| format!("user{:019}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1);
        let start = Instant::now();
        for i in 0..count {
            assert_eq!(now(session.insert(key(i).as_bytes(), &written)), Status::Ok);
        }
        let puts_per_s = count as f64 / start.elapsed().as_secs_f64();
        let mut read = Row::default();
        let mut gets = |session: &mut <Hse as Store>::Session| {
            let start = Instant::now();
            for i in 0..count {
                assert_eq!(now(session.read(key(i).as_bytes(), Projection::All, &mut read)), Status::Ok);
                assert!(read == written);
            }
            count as f64 / start.elapsed().as_secs_f64()
        };
        let gets_per_s = gets(&mut session);
        drop(session);
        let start = Instant::now();
        store.settle().unwrap();
        let settled_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        store.close().unwrap();
        let closed_s = start.elapsed().as_secs_f64();

        bench.options.create = false;
        let start = Instant::now();
        let store = bench.open();
        let opened_s = start.elapsed().as_secs_f64();
        let gets_again_per_s = gets(&mut store.session().unwrap());
        println!(
            "{count} × 1 kB, durability={}: create+open {made_s:.2} s, {puts_per_s:.0} puts/s, {gets_per_s:.0} gets/s, \
             settle {settled_s:.2} s, close {closed_s:.2} s, open {opened_s:.2} s, {gets_again_per_s:.0} gets/s",
            durability.name(),
        );
        println!("{:?}", store.guarantee());
        store.close().unwrap();
    }
}
