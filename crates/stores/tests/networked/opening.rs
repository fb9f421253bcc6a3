//! Cases about opening and closing.

use loadstone_load::{Projection, Status};
use loadstone_stores::{EngineError, RecordStore};

use crate::subject::{Subject, Sync, row};

pub fn the_guarantee_is_complete<S: RecordStore>(subject: &Subject, case: &str) {
    let opened = subject.open::<S>(case);
    let guarantee = opened.store.guarantee();
    assert!(!guarantee.how.is_empty());
    assert!(guarantee.facts.iter().any(|(name, value)| name == "version" && !value.is_empty()), "{guarantee:?}");
    assert!(opened.store.is_networked());
    opened.store.settle().expect("it settles");
    opened.close();
}

pub fn records_outlive_the_connection<S: RecordStore>(subject: &Subject, case: &str) {
    let mut opened = subject.open::<S>(case);
    let key = opened.key("1");
    assert_eq!(opened.session.insert_row(&key, &row(&[("field0", "kept")])), Status::Ok);
    opened.close();
    let mut options = subject.options();
    options.create = false;
    let store = S::open(&options).expect("it is there");
    let mut session = Sync::connect(&store).expect("a session");
    assert_eq!(session.read_row(&key, Projection::One(b"field0")), (Status::Ok, row(&[("field0", "kept")])));
}

/// Opens the store at a different address.
fn open_at<S: RecordStore>(subject: &Subject, host: &str, port: &str) -> Result<S, EngineError> {
    let store = S::open(&subject.options_at(host, port))?;
    Sync::connect(&store)?;
    Ok(store)
}

fn assert_refused<S: RecordStore>(subject: &Subject, host: &str, port: &str) {
    let error = open_at::<S>(subject, host, port).expect_err("no server listens");
    assert!(!error.is_usage(), "the command is correct, but the server is not available");
    assert!(error.message.contains(host), "{error}");
    assert!(!error.hint.unwrap_or_default().is_empty());
}

pub fn a_closed_port_is_refused<S: RecordStore>(subject: &Subject, _case: &str) {
    assert_refused::<S>(subject, "127.0.0.1", "1");
}

pub fn a_host_that_does_not_exist_is_refused<S: RecordStore>(subject: &Subject, _case: &str) {
    assert_refused::<S>(subject, "no-such-host.invalid", "6379");
}
