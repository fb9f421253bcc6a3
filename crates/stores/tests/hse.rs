//! The HSE store over a fake libhse, or over a real one (see `hse_fake`).

mod hse_fake;

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hse_fake::{Library, Version};
use loadstone_load::{Row, Status, Wanted};
use loadstone_stores::hse::{Hse, KEY_LEN_MAX, VALUE_LEN_MAX};
use loadstone_stores::{Durability, Options, Rows, Session, Store, StoreError};
use tempfile::TempDir;

/// A blocking session's futures are always ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a blocking session waits"),
    }
}

fn row(fields: &[(&str, &[u8])]) -> Row {
    let mut row = Row::default();
    for (name, value) in fields {
        row.push(name.as_bytes(), value);
    }
    row
}

/// A KVDB in a directory of its own, opened as a load opens it.
struct Bench {
    options: Options,
    library: Library,
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::over(Library::new())
    }

    fn over(library: Library) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { options: library.options(&directory.path().join("kvdb")), library, directory }
    }

    fn home(&self) -> &Path {
        Path::new(&self.options.properties["hse.kvdb_home"])
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.options.properties.insert(name.to_owned(), value.to_owned());
        self
    }

    fn lasting(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    fn open(&self) -> Hse {
        Hse::open(&self.options).expect("it opens")
    }

    fn refused(&self) -> StoreError {
        match Hse::open(&self.options) {
            Ok(_) => panic!("it opens"),
            Err(error) => error,
        }
    }

    /// The message and the hint, without the places that differ from run to run.
    fn refusal(&self) -> String {
        let error = self.refused();
        let text = format!("error: {}\nhint: {}", error.message, error.hint.unwrap_or_default());
        text.replace(&self.directory.path().display().to_string(), "DIR")
            .replace(&self.library.path().display().to_string(), "LIBRARY")
    }

    /// Of the calls so far, those that `wanted` chooses.
    fn calls(&self, wanted: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        Some(self.library.calls()?.into_iter().filter(|call| wanted(call)).collect())
    }
}

#[test]
fn records_go_round() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let written = row(&[("field0", b"one"), ("field1", b"\0\xff"), ("field2", b"")]);
    assert_eq!(now(session.insert(b"user1", &written)), Status::Ok);

    let mut read = Row::default();
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok);
    assert_eq!(read, written);
    assert_eq!(now(session.read(b"user1", Wanted::One(b"field1"), &mut read)), Status::Ok);
    assert_eq!(read, row(&[("field1", b"\0\xff")]));

    assert_eq!(now(session.insert(b"user1", &row(&[("field0", b"new")]))), Status::Ok);
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok);
    assert_eq!(read, row(&[("field0", b"new")]));

    assert_eq!(now(session.delete(b"user1")), Status::Ok);
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::NotFound);
    drop(session);
    store.close().unwrap();
}

#[test]
fn what_is_missing_is_not_found() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let mut read = row(&[("left", b"over")]);
    assert_eq!(now(session.read(b"nobody", Wanted::All, &mut read)), Status::NotFound);
    assert!(read.is_empty());
    assert_eq!(session.last_error().unwrap(), "no record with key nobody");
    assert_eq!(now(session.update(b"nobody", &row(&[("field0", b"x")]))), Status::NotFound);
    assert_eq!(now(session.delete(b"nobody")), Status::Ok);
}

#[test]
fn an_update_merges() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    now(session.insert(b"user1", &row(&[("field0", b"a"), ("field1", b"b"), ("field2", b"c")])));
    assert_eq!(now(session.update(b"user1", &row(&[("field1", b"longer than before")]))), Status::Ok);
    let mut read = Row::default();
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok);
    assert_eq!(read.get(b"field0"), Some(&b"a"[..]));
    assert_eq!(read.get(b"field1"), Some(&b"longer than before"[..]));
    assert_eq!(read.get(b"field2"), Some(&b"c"[..]));
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
        assert_eq!(now(session.scan(from, count, Wanted::All, &mut rows)), Status::Ok);
        for (key, row) in rows.iter() {
            assert_eq!(row.get(b"key"), Some(key));
        }
        rows.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(scan(b"a", 2), [&b"a"[..], b"a\0"]);
    assert_eq!(scan(b"aa", 2), [&b"ab"[..], b"user10"], "from a key that is not there, over one that is gone");
    assert_eq!(scan(b"user10", 100), [&b"user10"[..], b"user9", b"\xff\xfe"], "to the end");
    assert_eq!(scan(b"", 1), [&b"a"[..]], "from the start");
    assert!(scan(b"\xff\xff", 5).is_empty(), "past the end");
    assert!(scan(b"a", 0).is_empty());
    if let Some(cursors) = bench.calls(|call| call.starts_with("kvs_cursor_create") || call == "kvs_cursor_destroy") {
        assert_eq!(cursors.len(), 12, "each cursor is destroyed: {cursors:?}");
    }
}

#[test]
fn a_scan_may_start_at_a_key_that_is_too_long_to_be_there() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    for key in [&[b'a'; KEY_LEN_MAX - 1][..], &[b'a'; KEY_LEN_MAX], b"ab"] {
        now(session.insert(key, &row(&[("field0", b"")])));
    }
    let mut rows = Rows::default();
    for len in [KEY_LEN_MAX, KEY_LEN_MAX + 1, 70_000] {
        assert_eq!(now(session.scan(&vec![b'a'; len], 1, Wanted::All, &mut rows)), Status::Ok);
        let found = rows.iter().next().unwrap().0.len();
        assert_eq!(found, if len == KEY_LEN_MAX { KEY_LEN_MAX } else { 2 }, "from {len} bytes");
    }
    assert_eq!(now(session.scan(&vec![b'z'; 70_000], 1, Wanted::All, &mut rows)), Status::Ok);
    assert!(rows.is_empty());
}

#[test]
fn values_of_every_size_come_back_whole() {
    // As stored and, for HSE, as texts that compress to nothing: a value that is cut then does not tell its length.
    for compression in ["off", "on"] {
        let bench = Bench::new().with("hse.kvs.rparams", &format!("value.compression.default={compression}"));
        let store = bench.open();
        let mut session = store.session().unwrap();
        let overhead = row(&[("f", b"")]).bytes().len();
        let sizes =
            [0, 1, 4_095 - overhead, 4_096 - overhead, 4_097 - overhead, 8_192, 70_000, VALUE_LEN_MAX - overhead];
        for round in 0..2 {
            // Each size with a buffer of the first size, and with one that has grown.
            for size in sizes {
                if round == 0 {
                    session = store.session().unwrap();
                }
                let written = row(&[("f", &vec![b'x'; size])]);
                assert_eq!(now(session.insert(b"user1", &written)), Status::Ok, "{size}");
                let mut read = Row::default();
                assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok, "{size}");
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
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok);
    assert!(read.is_empty());
    let mut rows = Rows::default();
    assert_eq!(now(session.scan(b"user1", 1, Wanted::All, &mut rows)), Status::Ok);
    assert_eq!(rows.len(), 1);
}

#[test]
fn keys_and_values_beyond_the_limits_are_bad_requests() {
    let bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    let small = row(&[("f", b"x")]);
    let mut read = Row::default();
    assert_eq!(now(session.insert(&[b'k'; KEY_LEN_MAX], &small)), Status::Ok);
    assert_eq!(now(session.read(&[b'k'; KEY_LEN_MAX], Wanted::All, &mut read)), Status::Ok);

    let long = [b'k'; KEY_LEN_MAX + 1];
    for key in [&b""[..], &long] {
        let words = format!("HSE takes keys of 1 to 1344 bytes, not {}", key.len());
        for call in ["insert", "read", "delete"] {
            let status = match call {
                "insert" => now(session.insert(key, &small)),
                "read" => now(session.read(key, Wanted::All, &mut read)),
                _ => now(session.delete(key)),
            };
            assert_eq!(status, Status::BadRequest, "{call}");
            assert_eq!(session.last_error().as_deref(), Some(words.as_str()), "{call}");
        }
    }
    let big = row(&[("f", &vec![b'x'; VALUE_LEN_MAX])]);
    assert_eq!(now(session.insert(b"user1", &big)), Status::BadRequest);
    let words = format!("HSE takes values of up to 1048576 bytes, not {}", big.bytes().len());
    assert_eq!(session.last_error(), Some(words));
    assert_eq!(now(session.insert(b"user1", &small)), Status::Ok, "the session goes on");
}

#[test]
fn what_was_loaded_is_there_to_run() {
    let mut bench = Bench::new();
    let store = bench.open();
    let mut session = store.session().unwrap();
    for i in 0..100 {
        now(session.insert(format!("user{i}").as_bytes(), &row(&[("field0", &[i])])));
    }
    now(session.delete(b"user7"));
    drop(session);
    store.settle().unwrap();
    store.close().unwrap();

    bench.options.create = false;
    let store = bench.open();
    let mut session = store.session().unwrap();
    let mut read = Row::default();
    for i in 0..100 {
        let status = now(session.read(format!("user{i}").as_bytes(), Wanted::All, &mut read));
        assert_eq!(status, if i == 7 { Status::NotFound } else { Status::Ok }, "{i}");
        assert!(i == 7 || read.get(b"field0") == Some(&[i]));
    }
    drop(session);
    store.close().unwrap();

    // A second load goes on with what is there.
    bench.options.create = true;
    let store = bench.open();
    let mut session = store.session().unwrap();
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut read)), Status::Ok);
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
                    assert_eq!(now(session.read(key.as_bytes(), Wanted::All, &mut read)), Status::Ok);
                    assert_eq!(read, written);
                    assert_eq!(now(session.scan(key.as_bytes(), 3, Wanted::All, &mut rows)), Status::Ok);
                    assert!(!rows.is_empty());
                }
            });
        }
    });
    store.close().unwrap();
}

#[test]
fn only_with_durability_each_write_is_synced() {
    for (asked, promised, how, syncs) in [
        (Durability::None, Durability::None, "journal written within 100 ms, not waited for", false),
        (
            Durability::Os,
            Durability::Device,
            "hse_kvdb_sync at each write: journal on the device; HSE has nothing between this and none",
            true,
        ),
        (Durability::Device, Durability::Device, "hse_kvdb_sync at each write: journal on the device", true),
    ] {
        let bench = Bench::new().lasting(asked);
        let store = bench.open();
        assert_eq!((store.promise().durability, store.promise().how.as_str()), (promised, how));
        let mut session = store.session().unwrap();
        let mut read = Row::default();
        now(session.insert(b"user1", &row(&[("field0", b"a")])));
        now(session.update(b"user1", &row(&[("field0", b"b")])));
        now(session.read(b"user1", Wanted::All, &mut read));
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
        assert_eq!(calls, expected, "{asked:?}");
        store.close().unwrap();
    }
}

#[test]
fn everything_is_closed_in_its_order() {
    let bench = Bench::over(Library::fake(Version::Three));
    bench.open().close().unwrap();
    assert_eq!(
        bench.library.calls().unwrap(),
        [
            "init rest.enabled=false logging.enabled=false",
            "kvdb_create",
            "kvdb_open",
            "kvs_open",
            "kvs_create",
            "kvs_open",
            "kvs_close",
            "kvdb_close",
            "fini",
        ]
    );
    // Not closed, only dropped: as when an error ends a trial. And not created again.
    drop(bench.open());
    assert_eq!(
        bench.library.calls().unwrap()[9..],
        ["init rest.enabled=false logging.enabled=false", "kvdb_open", "kvs_open", "kvs_close", "kvdb_close", "fini"]
    );
}

#[test]
fn parameters_go_where_hse_takes_them() {
    let bench = Bench::over(Library::fake(Version::Three))
        .with(
            "hse.config",
            "kvdb.durability.interval_ms=1000; kvdb.kvs.usertable.pfx_len=9, kvdb.kvs.default.pfx_len=7,\
             kvdb.kvs.default.cn_cursor_vra=0,kvdb.storage.capacity.path=/data,throttling.init_policy=light,\
             logging.enabled=false",
        )
        .with("hse.gparams", "rest.enabled=true")
        .with("hse.kvdb.cparams", "storage.staging.path=/fast")
        .with("hse.kvdb.rparams", "csched_max_vgroups=1")
        .with("hse.kvs.cparams", "prefix.length=8")
        .with("hse.kvs.rparams", "transactions.enabled=false")
        .with("hse.cursor_pfx_len", "7");
    let store = bench.open();
    assert_eq!(
        bench.library.calls().unwrap(),
        [
            "init logging.enabled=false rest.enabled=true",
            "kvdb_create storage.capacity.path=/data storage.staging.path=/fast",
            "kvdb_open durability.interval_ms=1000 throttling.init_policy=light csched_max_vgroups=1",
            "kvs_open cn_cursor_vra=0 transactions.enabled=false",
            "kvs_create prefix.length=7 prefix.length=9 prefix.length=8",
            "kvs_open cn_cursor_vra=0 transactions.enabled=false",
        ]
    );
    let promise = store.promise();
    assert_eq!(promise.durability, Durability::Device);
    assert_eq!(
        promise.facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
        [
            ("version", std::fs::canonicalize(bench.library.path()).unwrap().to_str().unwrap()),
            ("directory", bench.home().to_str().unwrap()),
            ("cache_bytes", "0"),
            ("compression", "off"),
            ("prefix.length", "8"),
            ("throttling.init_policy", "medium"),
            ("cursor_pfx_len", "7, without effect: scans use no prefix"),
        ]
    );
}

#[test]
fn hse_2_has_other_names() {
    let bench = Bench::over(Library::fake(Version::Two)).lasting(Durability::None);
    let store = bench.open();
    assert_eq!(bench.library.calls().unwrap()[0], "init socket.enabled=false logging.enabled=false");
    assert!(store.promise().facts.contains(&("compression".to_owned(), "none".to_owned())));
}

#[test]
fn without_a_journal_the_promise_says_so() {
    let bench = Bench::new().with("hse.kvdb.rparams", "durability.enabled=false").lasting(Durability::None);
    let store = bench.open();
    assert_eq!(store.promise().how, "no journal");
    store.close().unwrap();
    drop(bench);
    let bench = Bench::new().with("hse.config", "kvdb.durability.interval_ms=250").lasting(Durability::None);
    assert_eq!(bench.open().promise().how, "journal written within 250 ms, not waited for");
}

#[test]
fn a_configuration_file_is_handed_on() {
    let bench = Bench::over(Library::fake(Version::Three));
    let file = bench.directory.path().join("hse.conf");
    std::fs::write(&file, "{\"logging\": {\"enabled\": false}}").unwrap();
    let bench = bench.with("hse.config", file.to_str().unwrap());
    drop(bench.open());
    assert_eq!(bench.library.calls().unwrap()[0], "init with a file");
}

#[test]
fn hse_opens_one_kvdb_at_a_time() {
    let mut bench = Bench::new();
    let store = bench.open();
    bench.options.properties.insert("hse.kvdb_home".into(), bench.directory.path().join("other").display().to_string());
    assert_eq!(
        bench.refusal(),
        "error: this process has a KVDB open, and HSE opens one at a time\nhint: close it first, or use another process"
    );
    store.close().unwrap();
    bench.open().close().unwrap();
}

#[test]
fn a_run_needs_a_load() {
    let mut bench = Bench::new();
    bench.options.create = false;
    assert_eq!(
        bench.refusal(),
        "error: no HSE database in DIR/kvdb\nhint: load one first: loadstone ycsb load hse -p hse.kvdb_home=DIR/kvdb"
    );
    assert!(!bench.home().exists(), "a run makes nothing");

    bench.options.create = true;
    bench.open().close().unwrap();
    bench.options.create = false;
    bench.options.table = "elsewhere".into();
    assert_eq!(
        bench.refusal(),
        "error: no table \"elsewhere\" in the HSE database DIR/kvdb\n\
         hint: load one first: loadstone ycsb load hse -p hse.kvdb_home=DIR/kvdb"
    );
}

#[test]
fn a_kvdb_of_hse_2_is_not_handed_to_hse_3() {
    for version in [Version::Three, Version::Two] {
        let bench = Bench::over(Library::fake(version));
        std::fs::create_dir(bench.home()).unwrap();
        std::fs::write(bench.home().join("kvdb.meta"), "{\"version\": 2, \"omf_version\": 2, \"storage\": {}}")
            .unwrap();
        if version == Version::Two {
            bench.open().close().unwrap();
            continue;
        }
        assert_eq!(
            bench.refusal(),
            "error: HSE 2 made the KVDB in DIR/kvdb, and HSE 3 cannot read it\n\
             hint: load it anew into an empty directory, or set hse.library to the libhse-2.so that made it"
        );
    }
}

#[test]
fn wrong_options_are_named() {
    let refusal = |name: &str, value: &str| {
        let bench = Bench::new().with(name, value);
        assert!(bench.refused().usage, "{name}={value}");
        bench.refusal()
    };
    assert_eq!(refusal("hse.kvdb_home", " "), "error: hse.kvdb_home is not set\nhint: add -p hse.kvdb_home=DIRECTORY");
    assert_eq!(
        refusal("hse.mpool_name", "ycsbData"),
        "error: only HSE 1 knows hse.mpool_name; since HSE 2.0 a KVDB is kept in a directory, not in an mpool\n\
         hint: leave it out"
    );
    assert_eq!(
        refusal("hse.params", "kvdb.dur_intvl_ms=1000,kvdb.log_lvl=6"),
        "error: only HSE 1 knows hse.params; since HSE 2.0 a KVDB is kept in a directory, not in an mpool\n\
         hint: write -p hse.config=kvdb.durability.interval_ms=1000,logging.level=6"
    );
    assert_eq!(
        refusal("hse.config", "/no/such/file"),
        "error: hse.config is neither a file nor name=value: \"/no/such/file\"\n\
         hint: write name=value,name=value, as in \
         kvdb.durability.interval_ms=1000,kvdb.kvs.default.prefix.length=7, or the path of an hse.conf"
    );
    assert_eq!(
        refusal("hse.config", "kvdb.mode=rdwr,prefix"),
        "error: hse.config: \"prefix\" is not name=value\nhint: the form is name=value,name=value"
    );
    assert_eq!(
        refusal("hse.config", "kvdb.kvs.other.cn_cursor_vra=0"),
        "error: hse.config: other.cn_cursor_vra is of another KVS than the table \"usertable\"\n\
         hint: write kvdb.kvs.default.cn_cursor_vra=… or kvdb.kvs.usertable.cn_cursor_vra=…"
    );
    assert_eq!(
        refusal("hse.cursor_pfx_len", "seven"),
        "error: hse.cursor_pfx_len must be a whole number, got \"seven\"\nhint: leave it out: scans use no prefix here"
    );
    assert_eq!(
        refusal("hse.library", "/no/such/libhse-3.so"),
        "error: no file /no/such/libhse-3.so (hse.library)\nhint: name the libhse-3.so that you built"
    );
    for table in ["", "default", "a table", "a-name-of-thirty-two-characters-"] {
        let mut bench = Bench::new();
        bench.options.table = table.into();
        assert_eq!(
            bench.refusal(),
            format!(
                "error: table cannot be a KVS of HSE: \"{table}\"\n\
                 hint: use 1 to 31 of A-Z a-z 0-9 - _, and not \"default\""
            )
        );
    }
}

#[test]
fn refused_parameters_are_shown() {
    let refusal = |name: &str, value: &str| {
        let bench = Bench::over(Library::fake(Version::Three)).with(name, value);
        let refusal = bench.refusal();
        let calls = bench.library.calls().unwrap();
        assert!(calls[0].starts_with("init"));
        assert_eq!(calls.last().unwrap() == "fini", name != "hse.gparams", "{calls:?}");
        refusal
    };
    let log = "to read in its log which one it refuses, add -p hse.gparams=logging.destination=stderr";
    assert_eq!(
        refusal("hse.gparams", "nonsense=1"),
        "error: HSE does not start with rest.enabled=false,logging.enabled=false,nonsense=1: fake.c:1: Invalid argument \
         (22)\nhint: hse.gparams takes HSE's global parameters; HSE's own words on standard error name the wrong one"
    );
    for (name, action) in [
        ("hse.kvdb.cparams", "create a KVDB in DIR/kvdb"),
        ("hse.kvdb.rparams", "open DIR/kvdb"),
        ("hse.kvs.cparams", "create KVS usertable in DIR/kvdb"),
        ("hse.kvs.rparams", "open KVS usertable in DIR/kvdb"),
    ] {
        assert_eq!(
            refusal(name, "nonsense=1"),
            format!(
                "error: HSE cannot {action}: fake.c:1: Invalid argument (22)\nhint: it was given nonsense=1; {log}"
            )
        );
    }
}

#[test]
fn a_library_that_is_no_library_is_named() {
    let bench = Bench::over(Library::fake(Version::Three));
    let file = bench.directory.path().join("libhse-3.so");
    std::fs::write(&file, "text").unwrap();
    let bench = bench.with("hse.library", file.to_str().unwrap());
    let refusal = bench.refusal();
    assert!(refusal.starts_with("error: cannot load HSE from DIR/libhse-3.so: "), "{refusal}");
    assert!(refusal.ends_with("\nhint: it must be a libhse of 2.x or 3.x for this processor"), "{refusal}");
}

#[test]
fn a_full_device_is_not_waited_for() {
    for durability in [Durability::None, Durability::Device] {
        let bench = Bench::over(Library::fake(Version::Three)).lasting(durability);
        let store = bench.open();
        let mut session = store.session().unwrap();
        let record = row(&[("field0", b"a")]);
        assert_eq!(now(session.insert(b"user1", &record)), Status::Ok);
        for key in [&b"!space"[..], b"user2"] {
            assert_eq!(now(session.insert(key, &record)), Status::NoSpace);
            assert_eq!(session.last_error().unwrap(), "fake.c:1: No space left on device (28)");
        }
        assert_eq!(now(session.read(b"user1", Wanted::All, &mut Row::default())), Status::Ok);
        let error = store.settle().unwrap_err();
        let home = bench.home().display();
        assert_eq!(error.message, format!("HSE cannot sync {home}: fake.c:1: No space left on device (28)"));
        assert_eq!(error.hint.unwrap(), "make room on the device, or choose another");
        drop(session);
        store.close().unwrap();
    }
}

#[test]
fn a_read_only_kvdb_forbids_writes() {
    let mut bench = Bench::new();
    let store = bench.open();
    now(store.session().unwrap().insert(b"user1", &row(&[("field0", b"a")])));
    store.close().unwrap();
    bench.options.create = false;
    let bench = bench.with("hse.kvdb.rparams", "mode=rdonly");
    let store = bench.open();
    let mut session = store.session().unwrap();
    assert_eq!(now(session.insert(b"user2", &row(&[("field0", b"a")]))), Status::Forbidden);
    assert_eq!(now(session.read(b"user1", Wanted::All, &mut Row::default())), Status::Ok);
    drop(session);
    store.settle().unwrap();
    store.close().unwrap();
}

/// Not a measurement, but the sizes of one: on a real library this many records meet its caches and its files.
#[test]
fn many_records_come_back() {
    let on_fake = std::env::var_os(hse_fake::UNDER_TEST).is_none();
    for (durability, count) in [(Durability::None, if on_fake { 5_000 } else { 100_000 }), (Durability::Device, 200)] {
        let mut bench = Bench::new().lasting(durability);
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
                assert_eq!(now(session.read(key(i).as_bytes(), Wanted::All, &mut read)), Status::Ok);
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
        println!("{:?}", store.promise());
        store.close().unwrap();
    }
}
