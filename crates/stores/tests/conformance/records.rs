//! Cases with one open store.

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::key_value::KeyValue;
use loadstone_stores::{Connection, Store};

use crate::subject::{Calls, Subject, row};

fn three() -> Row {
    row(&[("field0", "a"), ("field1", "bb"), ("field2", "ccc")])
}

pub fn reading_a_missing_key_finds_nothing<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    assert_eq!(opened.session.read_row(b"missing", Projection::All), (Status::NotFound, Row::default()));
    let message = opened.session.last_error();
    assert_eq!(message.as_deref(), Some("no record with key missing"));
    assert_eq!(opened.session.last_error(), None, "the message is returned only once");
}

pub fn updating_a_missing_key_creates_nothing<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    assert_eq!(opened.session.update_row(b"missing", &three()), Status::NotFound);
    assert_eq!(opened.session.read_row(b"missing", Projection::All).0, Status::NotFound);
    assert_eq!(opened.session.scan_rows(b"a", 10), (Status::Ok, vec![]));
}

pub fn deleting_a_missing_key_succeeds<K: KeyValue>(subject: &Subject) {
    assert_eq!(subject.open::<K>().session.delete_row(b"missing"), Status::Ok);
}

pub fn record_is_read_after_insert<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    assert_eq!(opened.session.insert_row(b"user1", &three()), Status::Ok);
    assert_eq!(opened.session.read_row(b"user1", Projection::All), (Status::Ok, three()));
    // A read of a similar key must not find the record.
    for other in [&b"user"[..], b"user10", b"user1\0", b"User1"] {
        assert_eq!(opened.session.read_row(other, Projection::All).0, Status::NotFound);
    }
}

pub fn single_field_is_read<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &three());
    let (status, read) = opened.session.read_row(b"user1", Projection::One(b"field1"));
    assert_eq!((status, read), (Status::Ok, row(&[("field1", "bb")])));
    assert_eq!(opened.session.read_row(b"user1", Projection::One(b"field9")), (Status::Ok, Row::default()));
}

pub fn read_returns_selected_fields<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &three());
    let names = ["field2".to_owned(), "field9".to_owned(), "field0".to_owned()];
    let (status, read) = opened.session.read_row(b"user1", Projection::Names(&names));
    assert_eq!((status, read), (Status::Ok, row(&[("field0", "a"), ("field2", "ccc")])));
}

pub fn an_update_keeps_the_other_fields<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &three());
    assert_eq!(opened.session.update_row(b"user1", &row(&[("field1", "changed")])), Status::Ok);
    assert_eq!(opened.session.update_row(b"user1", &row(&[("new", "added")])), Status::Ok);
    let whole = row(&[("field0", "a"), ("field1", "changed"), ("field2", "ccc"), ("new", "added")]);
    assert_eq!(opened.session.read_row(b"user1", Projection::All), (Status::Ok, whole));
}

pub fn an_insert_replaces_the_whole_record<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &three());
    assert_eq!(opened.session.insert_row(b"user1", &row(&[("field1", "alone")])), Status::Ok);
    assert_eq!(opened.session.read_row(b"user1", Projection::All), (Status::Ok, row(&[("field1", "alone")])));
    assert_eq!(opened.session.scan_rows(b"", 10).1.len(), 1);
}

pub fn a_deleted_record_is_gone<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &three());
    opened.session.insert_row(b"user2", &three());
    assert_eq!(opened.session.delete_row(b"user1"), Status::Ok);
    assert_eq!(opened.session.read_row(b"user1", Projection::All).0, Status::NotFound);
    assert_eq!(opened.session.scan_rows(b"", 10), (Status::Ok, vec![(b"user2".to_vec(), three())]));
    assert_eq!(opened.session.insert_row(b"user1", &three()), Status::Ok);
    assert_eq!(opened.session.read_row(b"user1", Projection::All), (Status::Ok, three()));
}

/// Keys whose byte order differs from their order of insertion, from numeric order, and from the order of signed bytes.
const SORTED: [&[u8]; 7] = [b"a", b"user1", b"user1\0", b"user10", b"user2", b"\xc3\xa9t\xc3\xa9", b"\xff"];

fn keys_from<K: KeyValue>(subject: &Subject, from: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut opened = subject.open::<K>();
    for at in [3, 0, 6, 1, 5, 4, 2] {
        assert_eq!(opened.session.insert_row(SORTED[at], &row(&[("at", &at.to_string())])), Status::Ok);
    }
    let (status, rows) = opened.session.scan_rows(from, count);
    assert_eq!(status, Status::Ok);
    for (key, row) in &rows {
        let at = SORTED.iter().position(|sorted| sorted == key).expect("a key that was inserted");
        assert_eq!(row.find_field(b"at"), Some(at.to_string().as_bytes()), "the row belongs to its key");
    }
    rows.into_iter().map(|(key, _)| key).collect()
}

pub fn scans_are_in_byte_order<K: KeyValue>(subject: &Subject) {
    assert_eq!(keys_from::<K>(subject, b"user1", 4), SORTED[1..5]);
    assert_eq!(keys_from::<K>(subject, b"user11", 2), SORTED[4..6], "from a key that is not there");
    assert_eq!(keys_from::<K>(subject, b"", 100), SORTED, "from before the first");
}

pub fn scan_past_the_end_returns_the_remaining_rows<K: KeyValue>(subject: &Subject) {
    assert_eq!(keys_from::<K>(subject, b"user2", 100), SORTED[4..]);
}

pub fn a_scan_beyond_the_end_returns_nothing<K: KeyValue>(subject: &Subject) {
    assert!(keys_from::<K>(subject, b"\xff\xff", 10).is_empty());
}

pub fn a_scan_of_none_returns_nothing<K: KeyValue>(subject: &Subject) {
    assert!(keys_from::<K>(subject, b"a", 0).is_empty());
}

pub fn empty_values_and_empty_rows_are_kept<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    let blank = row(&[("field0", ""), ("field1", "x"), ("field2", "")]);
    assert_eq!(opened.session.insert_row(b"blank", &blank), Status::Ok);
    assert_eq!(opened.session.insert_row(b"empty", &Row::default()), Status::Ok);
    assert_eq!(opened.session.read_row(b"blank", Projection::All), (Status::Ok, blank.clone()));
    assert_eq!(opened.session.read_row(b"empty", Projection::All), (Status::Ok, Row::default()));
    assert_eq!(opened.session.scan_rows(b"", 10).1, [(b"blank".to_vec(), blank), (b"empty".to_vec(), Row::default())]);
    assert_eq!(opened.session.update_row(b"empty", &row(&[("first", "1")])), Status::Ok);
    assert_eq!(opened.session.read_row(b"empty", Projection::All), (Status::Ok, row(&[("first", "1")])));
}

pub fn large_values_are_kept<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    // HSE accepts records of up to 1 MiB, including the names and lengths of the fields.
    for len in [5_000, (1 << 20) - 100] {
        let mut large = Row::default();
        large.push_with(b"field0", len, |value| {
            for (at, byte) in value.iter_mut().enumerate() {
                *byte = ((at * at) >> 7) as u8;
            }
        });
        assert_eq!(opened.session.insert_row(b"large", &large), Status::Ok);
        assert_eq!(opened.session.read_row(b"large", Projection::All), (Status::Ok, large.clone()));
        assert_eq!(opened.session.update_row(b"large", &row(&[("field1", "small")])), Status::Ok);
        large.push_field(b"field1", b"small");
        assert_eq!(opened.session.scan_rows(b"", 1).1, [(b"large".to_vec(), large)]);
    }
}

pub fn names_are_unicode_and_values_are_bytes<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    let mut odd = Row::default();
    odd.push_field("größe".as_bytes(), b"\0\0");
    odd.push_field("名前".as_bytes(), b"\xff\xfe\0tail");
    odd.push_field("".as_bytes(), b"nameless");
    assert_eq!(opened.session.insert_row(b"odd", &odd), Status::Ok);
    assert_eq!(opened.session.read_row(b"odd", Projection::All), (Status::Ok, odd.clone()));
    let (status, value) = opened.session.read_row(b"odd", Projection::One("名前".as_bytes()));
    assert_eq!((status, value.find_field("名前".as_bytes())), (Status::Ok, Some(&b"\xff\xfe\0tail"[..])));
    assert_eq!(opened.session.insert_row("clé\0".as_bytes(), &odd), Status::Ok);
    assert_eq!(opened.session.read_row("clé\0".as_bytes(), Projection::All), (Status::Ok, odd));
}

pub fn long_keys_are_kept<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    let key = |last: u8| [&[b'k'; 399][..], &[last]].concat();
    for last in [b'b', b'a'] {
        assert_eq!(opened.session.insert_row(&key(last), &row(&[("last", &char::from(last).to_string())])), Status::Ok);
    }
    assert_eq!(opened.session.read_row(&key(b'a'), Projection::All), (Status::Ok, row(&[("last", "a")])));
    let rows = opened.session.scan_rows(&key(b'a'), 10).1;
    assert_eq!(rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), [key(b'a'), key(b'b')]);
}

/// Engines accept different keys. An unacceptable key results in `BadRequest`, and the store continues to work.
pub fn impossible_key_does_not_panic<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    for key in [vec![], vec![b'k'; 512], vec![b'k'; 70_000]] {
        let put = opened.session.insert_row(&key, &three());
        let (got, rows) = opened.session.read_row(&key, Projection::All);
        match put {
            Status::Ok => assert_eq!((got, rows), (Status::Ok, three())),
            Status::BadRequest => {
                let message = opened.session.last_error().expect("words for a refusal");
                assert!(message.contains(&format!("not {}", key.len())), "{message}");
                assert_eq!(got, Status::BadRequest);
            }
            other => panic!("{other:?} for a key of {} bytes", key.len()),
        }
        assert_eq!(opened.session.delete_row(&key), put);
        assert_eq!(opened.session.scan_rows(&key, 5).0, Status::Ok, "a scan may start anywhere");
    }
    assert_eq!(opened.session.insert_row(b"user1", &three()), Status::Ok);
    assert_eq!(opened.session.scan_rows(b"", 5), (Status::Ok, vec![(b"user1".to_vec(), three())]));
}

pub fn clients_do_not_disturb_each_other<K: KeyValue>(subject: &Subject) {
    const CLIENTS: usize = 4;
    const OPERATIONS: usize = 500;
    let opened = subject.open::<K>();
    std::thread::scope(|threads| {
        let spawn = |client| {
            let store = &opened.store;
            threads.spawn(move || {
                let mut session = store.session().expect("a session on its own thread");
                let key = |n: usize| format!("user{client}-{n:04}").into_bytes();
                for n in 0..OPERATIONS / 5 {
                    let text = n.to_string();
                    assert_eq!(session.insert_row(&key(n), &row(&[("n", &text), ("state", "new")])), Status::Ok);
                    assert_eq!(session.update_row(&key(n), &row(&[("state", "old")])), Status::Ok);
                    let read = session.read_row(&key(n), Projection::All);
                    assert_eq!(read, (Status::Ok, row(&[("n", &text), ("state", "old")])));
                    let rows = session.scan_rows(&key(0), n / 2 + 1).1;
                    assert_eq!(
                        rows.last().map(|(key, _)| key.clone()),
                        Some(key(n / 2 * 2)),
                        "deleted records are absent"
                    );
                    if n % 2 == 1 {
                        assert_eq!(session.delete_row(&key(n)), Status::Ok);
                    }
                }
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(spawn).collect();
        // All threads must end before the store is closed, because LMDB releases a thread's reader slot when the thread
        // ends.
        for client in clients {
            client.join().expect("a client without a panic");
        }
    });
    let mut opened = opened;
    assert_eq!(opened.session.scan_rows(b"", 10_000).1.len(), CLIENTS * OPERATIONS / 10);
}
