//! Tests of creating, opening and closing a KVDB, and of the parameters that HSE receives.

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::{Durability, Session, Store};

use crate::bench::{Bench, now, row};
use crate::hse_fake::{Library, Version};

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
        let status = now(session.read(format!("user{i}").as_bytes(), Projection::All, &mut read));
        assert_eq!(status, if i == 7 { Status::NotFound } else { Status::Ok }, "{i}");
        assert!(i == 7 || read.find_field(b"field0") == Some(&[i]));
    }
    drop(session);
    store.close().unwrap();

    // A second load continues with the existing data.
    bench.options.create = true;
    let store = bench.open();
    let mut session = store.session().unwrap();
    assert_eq!(now(session.read(b"user1", Projection::All, &mut read)), Status::Ok);
}

#[test]
fn everything_is_closed_in_its_order() {
    let bench = Bench::with_library(Library::fake(Version::Three));
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
    // The store is dropped without being closed, as when an error ends a trial. The KVDB is not created again.
    drop(bench.open());
    assert_eq!(
        bench.library.calls().unwrap()[9..],
        ["init rest.enabled=false logging.enabled=false", "kvdb_open", "kvs_open", "kvs_close", "kvdb_close", "fini"]
    );
}

#[test]
fn parameters_go_where_hse_takes_them() {
    let bench = Bench::with_library(Library::fake(Version::Three))
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
    let guarantee = store.guarantee();
    assert_eq!(guarantee.durability, Durability::Device);
    assert_eq!(
        guarantee.facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
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
    let bench = Bench::with_library(Library::fake(Version::Two)).with_durability(Durability::None);
    let store = bench.open();
    assert_eq!(bench.library.calls().unwrap()[0], "init socket.enabled=false logging.enabled=false");
    assert!(store.guarantee().facts.contains(&("compression".to_owned(), "none".to_owned())));
}

#[test]
fn guarantee_states_a_missing_journal() {
    let bench = Bench::new().with("hse.kvdb.rparams", "durability.enabled=false").with_durability(Durability::None);
    let store = bench.open();
    assert_eq!(store.guarantee().how, "no journal");
    store.close().unwrap();
    drop(bench);
    let bench = Bench::new().with("hse.config", "kvdb.durability.interval_ms=250").with_durability(Durability::None);
    assert_eq!(bench.open().guarantee().how, "journal written within 250 ms; writes do not wait");
}

#[test]
fn a_configuration_file_is_handed_on() {
    let bench = Bench::with_library(Library::fake(Version::Three));
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
        "error: this process has a KVDB open, and HSE opens only one\nhint: close it first, or use another process"
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
    assert!(!bench.home().exists(), "a run creates nothing");

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
