//! Cases about opening, closing and reopening.

use std::fs;

use loadstone_load::{Projection, Status};
use loadstone_stores::key_value::KeyValue;
use loadstone_stores::{Connection, Durability, Store};

use crate::subject::{Calls, Subject, open, row, try_open};

pub fn tables_do_not_see_each_other<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.session.insert_row(b"user1", &row(&[("table", "first")]));
    let mut place = opened.close();

    "another".clone_into(&mut place.options.table);
    let store = open::<K>(&place.options);
    let mut session = store.session().expect("a session");
    assert_eq!(session.read_row(b"user1", Projection::All).0, Status::NotFound);
    assert_eq!(session.scan_rows(b"", 10), (Status::Ok, vec![]));
    assert_eq!(session.insert_row(b"user1", &row(&[("table", "second")])), Status::Ok);
    drop(session);
    store.close().expect("a clean close");

    for (table, stored) in [("usertable", "first"), ("another", "second")] {
        table.clone_into(&mut place.options.table);
        place.options.create = false;
        let store = open::<K>(&place.options);
        let mut session = store.session().expect("a session");
        assert_eq!(session.read_row(b"user1", Projection::All), (Status::Ok, row(&[("table", stored)])));
        drop(session);
        store.close().expect("a clean close");
    }
}

pub fn records_outlive_a_clean_close<K: KeyValue>(subject: &Subject) {
    for durability in [Durability::None, Durability::Os, Durability::Device] {
        let mut place = subject.place();
        place.options.durability = durability;
        // A load is followed by runs at every durability level, because the level belongs to an opening and not to the
        // files.
        for (round, next) in [durability, Durability::Device, Durability::None, Durability::Os].into_iter().enumerate()
        {
            place.options.durability = next;
            place.options.create = round == 0;
            let store = open::<K>(&place.options);
            let mut session = store.session().expect("a session");
            for n in 0..round * 20 {
                let key = format!("user{n:03}");
                let stored = session.read_row(key.as_bytes(), Projection::All);
                assert_eq!(stored, (Status::Ok, row(&[("n", &n.to_string())])), "{durability:?} then {next:?}");
            }
            for n in round * 20..round * 20 + 20 {
                assert_eq!(
                    session.insert_row(format!("user{n:03}").as_bytes(), &row(&[("n", &n.to_string())])),
                    Status::Ok
                );
            }
            assert_eq!(session.scan_rows(b"", 1_000).1.len(), round * 20 + 20);
            drop(session);
            store.close().expect("a clean close");
        }
    }
}

pub fn settling_leaves_every_record<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    opened.store.settle().expect("an empty store settles");
    let mut value = row(&[]);
    value.push_with(b"field0", 4_000, |bytes| bytes.fill(b'v'));
    for round in 0..3 {
        for n in 0..200 {
            assert_eq!(opened.session.insert_row(format!("user{n}").as_bytes(), &value), Status::Ok);
        }
        opened.store.settle().expect("it settles");
        assert_eq!(opened.session.scan_rows(b"", 1_000).1.len(), 200, "round {round}");
    }
    assert_eq!(opened.session.read_row(b"user199", Projection::All), (Status::Ok, value));
    opened.close();
}

pub fn bytes_that_are_no_row_are_reported<K: KeyValue>(subject: &Subject) {
    let place = subject.place();
    // The store is opened once as in the other tests, so that the files that it needs, such as an unpacked library,
    // exist.
    open::<K>(&place.options).close().expect("a clean close");
    let engine = K::open(&place.options).expect("the engine below the store");
    engine.put(&mut K::Client::default(), b"foreign", b"not a row").expect("a raw put");
    engine.settle().expect("it settles");
    engine.close().expect("a clean close");

    let store = open::<K>(&place.options);
    let mut session = store.session().expect("a session");
    assert_eq!(session.insert_row(b"own", &row(&[("field0", "a")])), Status::Ok);
    let statuses = [
        session.read_row(b"foreign", Projection::All).0,
        session.read_row(b"foreign", Projection::One(b"field0")).0,
        session.update_row(b"foreign", &row(&[("field0", "a")])),
        session.scan_rows(b"a", 10).0,
    ];
    assert_eq!(statuses, [Status::UnexpectedState; 4]);
    assert!(session.last_error().expect("words").starts_with("key foreign: not a record of this workload"));
    assert_eq!(session.read_row(b"own", Projection::All).0, Status::Ok);
    assert_eq!(session.insert_row(b"foreign", &row(&[("field0", "a")])), Status::Ok, "an insert replaces it");
    assert_eq!(session.scan_rows(b"a", 10).0, Status::Ok);
}

pub fn a_run_without_a_database_creates_nothing<K: KeyValue>(subject: &Subject) {
    let mut place = subject.place();
    place.options.create = false;
    let directory = subject.directory(&place.options);
    let refused = |what: &str| {
        let error = try_open::<K>(&place.options).err().unwrap_or_else(|| panic!("{what} was opened"));
        assert!(error.message.contains(&directory.display().to_string()), "{error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains("ycsb load"), "{:?}", error.hint);
        assert!(!error.is_usage(), "the command is correct, but the store is not available");
    };
    refused("a directory that is not there");
    assert!(!directory.exists());
    fs::create_dir_all(&directory).expect("a directory");
    refused("an empty directory");
    assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 0);
}

pub fn file_in_place_of_the_directory_is_refused<K: KeyValue>(subject: &Subject) {
    let place = subject.place();
    let directory = subject.directory(&place.options);
    fs::create_dir_all(directory.parent().expect("a parent")).expect("a parent");
    fs::write(&directory, "no directory").expect("a file");
    for create in [true, false] {
        let mut options = place.options.clone();
        options.create = create;
        let error = try_open::<K>(&options).expect_err("a file is not a directory");
        assert!(error.message.contains(&directory.display().to_string()), "{error}");
    }
    assert_eq!(fs::read_to_string(&directory).expect("it is there"), "no directory");
}

pub fn a_second_opening_is_refused<K: KeyValue>(subject: &Subject) {
    let mut opened = subject.open::<K>();
    let error = try_open::<K>(&opened.place.options).expect_err("one opening at a time");
    assert!(error.hint.as_deref().unwrap_or_default().contains("another"), "{error} {:?}", error.hint);
    assert_eq!(
        opened.session.insert_row(b"user1", &row(&[("field0", "a")])),
        Status::Ok,
        "the first store still works"
    );
    let place = opened.close();
    open::<K>(&place.options).close().expect("a clean close");
}

pub fn the_guarantee_is_no_weaker_than_asked<K: KeyValue>(subject: &Subject) {
    for durability in [Durability::None, Durability::Os, Durability::Device] {
        let mut place = subject.place();
        place.options.durability = durability;
        let store = open::<K>(&place.options);
        let guarantee = store.guarantee();
        assert!(guarantee.durability >= durability, "{guarantee:?}");
        assert!(!guarantee.how.is_empty());
        let fact = |name: &str| guarantee.facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!(fact("directory"), Some(&*subject.directory(&place.options).display().to_string()));
        for name in ["version", "cache_bytes", "compression"] {
            assert!(!fact(name).unwrap_or_default().is_empty(), "{name}: {guarantee:?}");
        }
        store.close().expect("a clean close");
    }
}
