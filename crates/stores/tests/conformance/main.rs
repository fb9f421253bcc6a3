//! Requirements for all embedded stores, case by case, with the real engines, each in a separate directory.
//!
//! To add a store, add one line to the list at the end of this file. To add a case, add a function to `records.rs`,
//! `opening.rs` or `kill.rs`, and its name to the list of cases.

#[path = "../hse_fake/mod.rs"]
mod hse_fake;
mod kill;
mod limits;
mod opening;
mod records;
mod subject;

/// Generates a module for each store, with a test for each case.
macro_rules! conformance {
    ($($name:ident: $engine:ty, $directory:literal, [$($property:literal = $value:literal),*];)*) => {
        $(
            mod $name {
                use crate::subject::Subject;
                const SUBJECT: Subject = Subject {
                    name: stringify!($name),
                    directory: $directory,
                    properties: &[$(($property, $value)),*],
                };
                cases! { $engine;
                    records: reading_a_missing_key_finds_nothing, updating_a_missing_key_creates_nothing,
                        deleting_a_missing_key_succeeds, record_is_read_after_insert, single_field_is_read,
                        read_returns_selected_fields, an_update_keeps_the_other_fields,
                        an_insert_replaces_the_whole_record, a_deleted_record_is_gone, scans_are_in_byte_order,
                        scan_past_the_end_returns_the_remaining_rows, a_scan_beyond_the_end_returns_nothing,
                        a_scan_of_none_returns_nothing, empty_values_and_empty_rows_are_kept,
                        large_values_are_kept, names_are_unicode_and_values_are_bytes, long_keys_are_kept,
                        impossible_key_does_not_panic, clients_do_not_disturb_each_other;
                    opening: tables_do_not_see_each_other, records_outlive_a_clean_close,
                        settling_leaves_every_record, bytes_that_are_no_row_are_reported,
                        a_run_without_a_database_creates_nothing, file_in_place_of_the_directory_is_refused,
                        a_second_opening_is_refused, the_guarantee_is_no_weaker_than_asked;
                    kill: none_opens_after_a_kill, os_outlives_a_kill, device_outlives_a_kill;
                }
                /// This is not a case but the process that the cases of `kill` start and kill.
                #[test]
                #[ignore = "started by the cases that kill it"]
                fn victim() {
                    crate::kill::victim::<$engine>(&SUBJECT);
                }
            }
        )*
    };
}

macro_rules! cases {
    ($engine:ty; $($module:ident: $($case:ident),*;)*) => {
        $($(
            #[test]
            fn $case() {
                crate::$module::$case::<$engine>(&SUBJECT);
            }
        )*)*
    };
}

conformance! {
    rocksdb: loadstone_stores::rocksdb::RocksDbEngine, "rocksdb.dir", [];
    rocksdb_5_11_3: loadstone_stores::rocksdb::RocksDbEngine, "rocksdb.dir", ["rocksdb.version" = "5.11.3"];
    lmdb: loadstone_stores::lmdb::LmdbEngine, "lmdb.dir", [];
    fjall: loadstone_stores::fjall::FjallEngine, "fjall.dir", [];
    redb: loadstone_stores::redb::RedbEngine, "redb.dir", [];
    // A fake C library is the default, because no package contains HSE. `tests/hse_fake/mod.rs` explains how to run
    // with a real library.
    hse: loadstone_stores::hse::HseEngine, "hse.kvdb_home", ["hse.library" = "fake"];
}

/// The versions that guarantees print are constants, which must be updated together with the dependencies.
#[test]
fn versions_are_those_of_the_lock_file() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    for (name, version) in [
        ("fjall", loadstone_stores::fjall::VERSION),
        ("heed", loadstone_stores::lmdb::HEED),
        ("redb", loadstone_stores::redb::VERSION),
    ] {
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{name} is not {version}");
    }
}
