//! Cases with one open store.

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::{Connection, RecordStore, Session};

use crate::subject::{Subject, Sync, fields, pad_record, row, runtime};

const THREE: [(&str, &str); 3] = [("field0", "a"), ("field1", "bb"), ("field2", "ccc")];

pub fn reading_a_missing_key_finds_nothing<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    assert_eq!(opened.session.read_row(&opened.key("missing"), Projection::All), (Status::NotFound, Row::default()));
    let update = opened.session.update_row(&opened.key("missing"), &row(&THREE));
    if subject.tells_missing {
        assert_eq!(update, Status::NotFound);
        assert_eq!(opened.session.read_row(&opened.key("missing"), Projection::All).0, Status::NotFound);
    } else {
        assert_eq!(update, Status::Ok, "an upsert");
    }
}

pub fn deleting_a_missing_key_succeeds<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    assert_eq!(opened.session.delete_row(&opened.key("missing")), Status::Ok);
}

pub fn record_is_read_after_insert<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    assert_eq!(opened.session.insert_row(&opened.key("1"), &row(&THREE)), Status::Ok, "{}", opened.session.message());
    let (status, read) = opened.session.read_row(&opened.key("1"), Projection::All);
    assert_eq!((status, fields(&read)), (Status::Ok, pad_record(subject, &THREE)));
    for other in ["", "10", "1 "] {
        assert_eq!(opened.session.read_row(&opened.key(other), Projection::All).0, Status::NotFound);
    }
}

pub fn single_field_is_read<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    opened.session.insert_row(&opened.key("1"), &row(&THREE));
    let (status, read) = opened.session.read_row(&opened.key("1"), Projection::One(b"field1"));
    assert_eq!((status, read), (Status::Ok, row(&[("field1", "bb")])));
}

pub fn read_returns_selected_fields<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    opened.session.insert_row(&opened.key("1"), &row(&THREE));
    let names = ["field2".to_owned(), "field0".to_owned()];
    let (status, read) = opened.session.read_row(&opened.key("1"), Projection::Names(&names));
    assert_eq!((status, fields(&read)), (Status::Ok, fields(&row(&[("field0", "a"), ("field2", "ccc")]))));
}

pub fn an_update_keeps_the_other_fields<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let key = opened.key("1");
    opened.session.insert_row(&key, &row(&THREE));
    assert_eq!(opened.session.update_row(&key, &row(&[("field1", "changed")])), Status::Ok);
    assert_eq!(opened.session.update_row(&key, &row(&[("field7", "added"), ("field0", "A")])), Status::Ok);
    let expected =
        pad_record(subject, &[("field0", "A"), ("field1", "changed"), ("field2", "ccc"), ("field7", "added")]);
    assert_eq!(fields(&opened.session.read_row(&key, Projection::All).1), expected);
}

pub fn insert_over_a_record_is_read_or_refused<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let key = opened.key("1");
    opened.session.insert_row(&key, &row(&THREE));
    let again = opened.session.insert_row(&key, &row(&[("field1", "again")]));
    let read = fields(&opened.session.read_row(&key, Projection::All).1);
    if subject.refuses_second {
        assert_eq!(again, Status::UnexpectedState);
        assert!(!opened.session.message().is_empty());
        assert_eq!(read, pad_record(subject, &THREE));
    } else {
        assert_eq!(again, Status::Ok);
        assert_eq!(read.get("field1").map(Vec::as_slice), Some(&b"again"[..]));
    }
}

pub fn a_deleted_record_is_gone<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let (first, two) = (opened.key("1"), opened.key("2"));
    opened.session.insert_row(&first, &row(&THREE));
    opened.session.insert_row(&two, &row(&THREE));
    assert_eq!(opened.session.delete_row(&first), Status::Ok);
    assert_eq!(opened.session.read_row(&first, Projection::All).0, Status::NotFound);
    assert_eq!(opened.session.read_row(&two, Projection::All).0, Status::Ok);
    assert_eq!(opened.session.insert_row(&first, &row(&THREE)), Status::Ok);
    assert_eq!(fields(&opened.session.read_row(&first, Projection::All).1), pad_record(subject, &THREE));
}

/// Whatever the order of keys, a scan from an existing record returns this record first, and never returns more than
/// the requested number of records.
pub fn scans_find_what_is_there<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let keys: Vec<Vec<u8>> = (0..20).map(|n| opened.key(&format!("{n:02}"))).collect();
    for key in &keys {
        opened.session.insert_row(key, &row(&THREE));
    }
    let (status, rows) = opened.session.scan_rows(&keys[0], 5);
    if !subject.scans {
        assert_eq!(status, Status::NotImplemented);
        return;
    }
    assert_eq!(status, Status::Ok, "{}", opened.session.message());
    assert_eq!(rows.first().map(|(key, _)| key), Some(&keys[0]));
    assert!(rows.len() <= 5);
    for (key, row) in rows.iter().filter(|(key, _)| keys.contains(key)) {
        assert_eq!(fields(row), pad_record(subject, &THREE), "{}", String::from_utf8_lossy(key));
    }
}

pub fn scans_are_in_byte_order<S: RecordStore>(subject: &Subject, case: &str) {
    if !subject.ordered {
        return;
    }
    let mut opened = subject.open::<S>(case);
    let keys: Vec<Vec<u8>> = ["1", "10", "11", "2", "20", "9"].iter().map(|name| opened.key(name)).collect();
    for at in [3, 0, 5, 1, 4, 2] {
        opened.session.insert_row(&keys[at], &row(&[("field0", &at.to_string())]));
    }
    let (status, rows) = opened.session.scan_rows(&keys[1], 4);
    assert_eq!(status, Status::Ok);
    assert_eq!(rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), keys[1..5]);
    for (at, (_, row)) in rows.iter().enumerate() {
        assert_eq!(row.find_field(b"field0"), Some((at + 1).to_string().as_bytes()), "the row belongs to its key");
    }
}

pub fn empty_values_are_kept<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let blank = [("field0", ""), ("field1", "x"), ("field2", "")];
    assert_eq!(opened.session.insert_row(&opened.key("1"), &row(&blank)), Status::Ok);
    assert_eq!(fields(&opened.session.read_row(&opened.key("1"), Projection::All).1), pad_record(subject, &blank));
}

pub fn large_values_are_kept<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let key = opened.key("1");
    for len in [5_000, 1_000_000] {
        let text: String = (0..len).map(|n: u64| char::from(b' ' + ((n * n) >> 7) as u8 % 95)).collect();
        opened.session.delete_row(&key);
        assert_eq!(
            opened.session.insert_row(&key, &row(&[("field0", &text)])),
            Status::Ok,
            "{}",
            opened.session.message()
        );
        let (status, read) = opened.session.read_row(&key, Projection::One(b"field0"));
        assert_eq!(status, Status::Ok);
        assert!(read.find_field(b"field0") == Some(text.as_bytes()), "{len} bytes");
    }
}

pub fn values_are_text_of_any_language<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let odd = [("field0", "größe 名前"), ("field1", "'\"\\;--\r\n\t${}%"), ("field2", "{\"a\": [1]}")];
    assert_eq!(opened.session.insert_row(&opened.key("1"), &row(&odd)), Status::Ok, "{}", opened.session.message());
    assert_eq!(fields(&opened.session.read_row(&opened.key("1"), Projection::All).1), pad_record(subject, &odd));
    assert_eq!(opened.session.update_row(&opened.key("1"), &row(&odd[1..2])), Status::Ok);
    assert_eq!(fields(&opened.session.read_row(&opened.key("1"), Projection::All).1), pad_record(subject, &odd));
}

pub fn values_are_bytes<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let mut odd = Row::default();
    odd.push_field(b"field0", b"\xff\xfe\0tail");
    let put = opened.session.insert_row(&opened.key("1"), &odd);
    if subject.bytes {
        assert_eq!(put, Status::Ok, "{}", opened.session.message());
        assert_eq!(opened.session.read_row(&opened.key("1"), Projection::One(b"field0")), (Status::Ok, odd));
    } else {
        assert!(matches!(put, Status::BadRequest | Status::Error), "{put:?}");
        assert!(!opened.session.message().is_empty());
    }
    assert_eq!(opened.session.insert_row(&opened.key("2"), &row(&THREE)), Status::Ok, "the client still works");
}

pub fn keys_with_signs_are_kept<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    for name in ["'; DROP TABLE usertable; --", "two words", "größe", "a\r\nb", "\"\\{}"] {
        let key = opened.key(name);
        assert_eq!(opened.session.insert_row(&key, &row(&[("field0", name)])), Status::Ok, "{name}");
        let (status, read) = opened.session.read_row(&key, Projection::One(b"field0"));
        assert_eq!((status, read), (Status::Ok, row(&[("field0", name)])));
    }
}

/// Systems accept different keys. An unacceptable key is answered with a message, and the client continues to work.
pub fn impossible_keys_are_answers<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    for key in [vec![], vec![b'k'; 70_000], b"\xff\xfe".to_vec()] {
        opened.session.delete_row(&key);
        let put = opened.session.insert_row(&key, &row(&THREE));
        if put == Status::Ok {
            assert_eq!(fields(&opened.session.read_row(&key, Projection::All).1), pad_record(subject, &THREE));
            assert_eq!(opened.session.delete_row(&key), Status::Ok);
        } else {
            assert!(matches!(put, Status::BadRequest | Status::Error), "{put:?}");
            assert!(!opened.session.message().is_empty());
        }
    }
    assert_eq!(opened.session.insert_row(&opened.key("1"), &row(&THREE)), Status::Ok, "{}", opened.session.message());
}

pub fn clients_do_not_disturb_each_other<S: RecordStore>(subject: &Subject, case: &str) {
    const CLIENTS: usize = 4;
    let opened = subject.open::<S>(case);
    std::thread::scope(|threads| {
        for client in 0..CLIENTS {
            let opened = &opened.store;
            let key = move |n: usize| format!("{case}-{client}-{n:04}").into_bytes();
            threads.spawn(move || {
                let mut session = Sync::connect(opened).expect("a session on its own thread");
                for n in 0..100 {
                    let text = n.to_string();
                    session.delete_row(&key(n));
                    assert_eq!(session.insert_row(&key(n), &row(&[("field0", &text), ("field1", "new")])), Status::Ok);
                    assert_eq!(session.update_row(&key(n), &row(&[("field1", "old")])), Status::Ok);
                    let read = session.read_row(&key(n), Projection::All).1;
                    assert_eq!(fields(&read), pad_record(subject, &[("field0", &text), ("field1", "old")]));
                }
            });
        }
    });
    opened.close();
}

/// As in the engine, many clients share a thread, each with one operation in flight.
pub fn executor_serves_many_clients<S: RecordStore>(subject: &Subject, case: &str) {
    const CLIENTS: usize = 50;
    let opened = subject.open::<S>(case);
    let runtime = runtime();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let mut session = opened.store.session().expect("a session");
            let keys: Vec<Vec<u8>> = (0..20).map(|n| opened.key(&format!("{client}-{n}"))).collect();
            clients.push(tokio::task::spawn_local(async move {
                session.connect().await.expect("a connection");
                let mut read = Row::default();
                for (n, key) in keys.iter().enumerate() {
                    let text = format!("{client} {n}");
                    assert_eq!(session.insert(key, &row(&[("field0", &text)])).await, Status::Ok);
                    assert_eq!(session.read(key, Projection::One(b"field0"), &mut read).await, Status::Ok);
                    assert_eq!(read.find_field(b"field0"), Some(text.as_bytes()));
                }
                session.cleanup().await;
            }));
        }
        for client in clients {
            client.await.expect("no client fails");
        }
    });
    drop(tasks);
    drop(runtime);
    opened.close();
}
