//! Cases about broken connections, late answers, wrong passwords and missing tables.

use loadstone_load::{Projection, Status};
use loadstone_stores::RecordStore;

use crate::relay::Relay;
use crate::subject::{Subject, Sync, row};

/// A client behind a relay, with a time limit for every wait, including the waits of a new connection.
fn connect_through_relay<S: RecordStore>(subject: &Subject, limit_ms: u32) -> (Relay, Sync<S::Session>) {
    let (host, port) = subject.address();
    let relay = Relay::to(format!("{host}:{port}"));
    let mut options = subject.options_at("127.0.0.1", &relay.address.port().to_string());
    options.properties.insert(subject.timeout.to_owned(), limit_ms.to_string());
    let store = S::open(&options).expect("it is there");
    let session = Sync::connect(&store).expect("a session");
    (relay, session)
}

pub fn a_broken_connection_is_made_anew<S: RecordStore>(subject: &Subject, case: &str) {
    if subject.timeout.is_empty() {
        return;
    }
    let (relay, mut session) = connect_through_relay::<S>(subject, 10_000);
    let key = subject.open::<S>(case).key("1");
    assert_eq!(session.insert_row(&key, &row(&[("field0", "kept")])), Status::Ok);
    for _ in 0..5 {
        relay.cut_connections();
        let (status, _) = session.read_row(&key, Projection::One(b"field0"));
        // A client library that notices the broken connection immediately has already made a new connection.
        assert!(matches!(status, Status::ServiceUnavailable | Status::Ok), "{status:?}");
        if status != Status::Ok {
            assert!(!session.message().is_empty());
        }
        let read = session.read_row(&key, Projection::One(b"field0"));
        assert_eq!(read, (Status::Ok, row(&[("field0", "kept")])), "{}", session.message());
    }
}

pub fn a_late_answer_is_dropped<S: RecordStore>(subject: &Subject, case: &str) {
    if subject.timeout.is_empty() {
        return;
    }
    let (relay, mut session) = connect_through_relay::<S>(subject, 1_500);
    let mut opened = subject.open::<S>(case);
    let (first, two) = (opened.key("1"), opened.key("2"));
    opened.session.insert_row(&first, &row(&[("field0", "one")]));
    opened.session.insert_row(&two, &row(&[("field0", "two")]));
    for _ in 0..3 {
        relay.hold_bytes(true);
        assert_eq!(session.read_row(&first, Projection::One(b"field0")).0, Status::Timeout);
        assert!(session.message().contains("1500 ms"));
        relay.hold_bytes(false);
        for _ in 0..3 {
            let read = session.read_row(&two, Projection::One(b"field0"));
            assert_eq!(read, (Status::Ok, row(&[("field0", "two")])), "{}", session.message());
        }
    }
}

pub fn an_unknown_password_is_refused<S: RecordStore>(subject: &Subject, _case: &str) {
    if subject.password.is_empty() {
        return;
    }
    let mut options = subject.options();
    options.properties.insert(subject.password.to_owned(), "wrong".to_owned());
    let refused = S::open(&options).and_then(|store| Sync::connect(&store).map(|_| ()));
    let error = refused.expect_err("no user has this password");
    assert!(!error.is_usage());
    assert!(error.message.contains(&subject.address().1), "{error}");
    assert!(error.hint.unwrap_or_default().contains(subject.password));
}

pub fn a_missing_table_is_reported<S: RecordStore>(subject: &Subject, _case: &str) {
    if subject.tables {
        for create in [true, false] {
            let mut options = subject.options();
            options.create = create;
            "nosuchtable".clone_into(&mut options.table);
            let refused = S::open(&options).and_then(|store| Sync::connect(&store).map(|_| ()));
            let error = refused.expect_err("there is no such table");
            assert!(!error.is_usage() && error.message.contains("nosuchtable"), "{error}");
            assert!(error.hint.unwrap_or_default().contains("nosuchtable"), "the hint names the table to create");
        }
    }
}
