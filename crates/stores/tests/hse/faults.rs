//! Tests of the store's refusals and error messages.

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::{Connection, Durability, Session, Store};

use crate::bench::{Bench, now, row};
use crate::hse_fake::{Library, Version};

#[test]
fn hse_3_does_not_open_hse_2_data() {
    for version in [Version::Three, Version::Two] {
        let bench = Bench::with_library(Library::fake(version));
        std::fs::create_dir(bench.home()).unwrap();
        std::fs::write(bench.home().join("kvdb.meta"), "{\"version\": 2, \"omf_version\": 2, \"storage\": {}}")
            .unwrap();
        if version == Version::Two {
            bench.open().close().unwrap();
            continue;
        }
        assert_eq!(
            bench.refusal(),
            "error: HSE 2 created the KVDB in DIR/kvdb, and HSE 3 cannot read it\n\
             hint: load it again into an empty directory, or set hse.library to the libhse-2.so that created it"
        );
    }
}

#[test]
fn wrong_options_are_named() {
    let refusal = |name: &str, value: &str| {
        let bench = Bench::new().with(name, value);
        assert!(bench.open_error().is_usage(), "{name}={value}");
        bench.refusal()
    };
    assert_eq!(refusal("hse.kvdb_home", " "), "error: hse.kvdb_home is not set\nhint: add -p hse.kvdb_home=DIRECTORY");
    assert_eq!(
        refusal("hse.mpool_name", "ycsbData"),
        "error: only HSE 1 has hse.mpool_name; since HSE 2.0 a KVDB is kept in a directory, not in an mpool\n\
         hint: leave it out"
    );
    assert_eq!(
        refusal("hse.params", "kvdb.dur_intvl_ms=1000,kvdb.log_lvl=6"),
        "error: only HSE 1 has hse.params; since HSE 2.0 a KVDB is kept in a directory, not in an mpool\n\
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
        "error: hse.config: other.cn_cursor_vra is for a KVS other than the table \"usertable\"\n\
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
                "error: table is not a valid name for a KVS of HSE: \"{table}\"\n\
                 hint: use 1 to 31 of A-Z a-z 0-9 - _, and not \"default\""
            )
        );
    }
}

#[test]
fn refused_parameters_are_shown() {
    let refusal = |name: &str, value: &str| {
        let bench = Bench::with_library(Library::fake(Version::Three)).with(name, value);
        let refusal = bench.refusal();
        let calls = bench.library.calls().unwrap();
        assert!(calls[0].starts_with("init"));
        assert_eq!(calls.last().unwrap() == "fini", name != "hse.gparams", "{calls:?}");
        refusal
    };
    let log = "to see HSE's log, add -p hse.gparams=logging.destination=stderr";
    assert_eq!(
        refusal("hse.gparams", "nonsense=1"),
        "error: HSE does not start with rest.enabled=false,logging.enabled=false,nonsense=1: fake.c:1: Invalid argument \
         (22)\nhint: hse.gparams takes HSE's global parameters; standard error names the invalid one"
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
                "error: HSE cannot {action}: fake.c:1: Invalid argument (22)\n\
                 hint: a parameter in nonsense=1 is invalid; {log}"
            )
        );
    }
}

#[test]
fn invalid_library_is_named() {
    let bench = Bench::with_library(Library::fake(Version::Three));
    let file = bench.directory.path().join("libhse-3.so");
    std::fs::write(&file, "text").unwrap();
    let bench = bench.with("hse.library", file.to_str().unwrap());
    let refusal = bench.refusal();
    assert!(refusal.starts_with("error: cannot load HSE from DIR/libhse-3.so: "), "{refusal}");
    assert!(refusal.ends_with("\nhint: it must be libhse 2.x or 3.x for this processor"), "{refusal}");
}

#[test]
fn a_full_device_is_not_waited_for() {
    for durability in [Durability::None, Durability::Device] {
        let bench = Bench::with_library(Library::fake(Version::Three)).with_durability(durability);
        let store = bench.open();
        let mut session = store.session().unwrap();
        let record = row(&[("field0", b"a")]);
        assert_eq!(now(session.insert(b"user1", &record)), Status::Ok);
        for key in [&b"!space"[..], b"user2"] {
            assert_eq!(now(session.insert(key, &record)), Status::NoSpace);
            assert_eq!(session.last_error().unwrap(), "fake.c:1: No space left on device (28)");
        }
        assert_eq!(now(session.read(b"user1", Projection::All, &mut Row::default())), Status::Ok);
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
    assert_eq!(now(session.read(b"user1", Projection::All, &mut Row::default())), Status::Ok);
    drop(session);
    store.settle().unwrap();
    store.close().unwrap();
}
