//! Requirements for all networked stores, case by case, with real servers.
//!
//! `tests/servers/test_stores_networked.py` starts each server and runs the cases of its store. To run a case by hand,
//! set the variable in the store's line below to the store's properties, separated by spaces. To add a store, add one
//! line to the list.

mod faults;
mod opening;
mod records;
mod relay;
mod subject;

/// Generates a module for each store, with a test for each case.
macro_rules! conformance {
    ($($name:ident: $store:ty, $variable:literal, [$($ability:ident),*] $({$($property:ident: $value:literal),*})?;)*) => {
        $(
            mod $name {
                use crate::subject::Subject;
                const SUBJECT: Subject = Subject {
                    variable: $variable,
                    $($ability: true,)*
                    $($($property: $value,)*)?
                    ..Subject::NONE
                };
                cases! { $store;
                    records: reading_a_missing_key_finds_nothing, deleting_a_missing_key_succeeds,
                        record_is_read_after_insert, single_field_is_read, read_returns_selected_fields,
                        an_update_keeps_the_other_fields, insert_over_a_record_is_read_or_refused,
                        a_deleted_record_is_gone, scans_find_what_is_there, scans_are_in_byte_order,
                        empty_values_are_kept, large_values_are_kept, values_are_text_of_any_language,
                        values_are_bytes, keys_with_signs_are_kept, impossible_keys_are_answers,
                        clients_do_not_disturb_each_other, executor_serves_many_clients;
                    opening: the_guarantee_is_complete, a_closed_port_is_refused,
                        a_host_that_does_not_exist_is_refused, records_outlive_the_connection;
                    faults: a_broken_connection_is_made_anew, a_late_answer_is_dropped,
                        an_unknown_password_is_refused, a_missing_table_is_reported;
                }
            }
        )*
    };
}

macro_rules! cases {
    ($store:ty; $($module:ident: $($case:ident),*;)*) => {
        $($(
            #[test]
            #[ignore = "needs a server: tests/servers/test_stores_networked.py starts it"]
            fn $case() {
                crate::$module::$case::<$store>(&SUBJECT, stringify!($case));
            }
        )*)*
    };
}

conformance! {
    redis: loadstone_stores::redis::Redis, "LOADSTONE_TEST_REDIS", [scans, bytes]
        {timeout: "redis.timeout", password: "redis.password"};
    postgres: loadstone_stores::postgres::Postgres, "LOADSTONE_TEST_POSTGRES",
        [ordered, scans, tells_missing, refuses_second, tables] {timeout: "postgres.timeout", password: "db.passwd"};
    postgrenosql: loadstone_stores::postgres::PostgreNoSql, "LOADSTONE_TEST_POSTGRENOSQL",
        [ordered, scans, tells_missing, refuses_second, tables]
        {timeout: "postgres.timeout", password: "postgrenosql.passwd"};
    cassandra: loadstone_stores::cassandra::Cassandra, "LOADSTONE_TEST_CASSANDRA", [scans, tables]
        {timeout: "cassandra.readtimeoutmillis", password: "cassandra.password"};
    hbase: loadstone_stores::hbase::HBase, "LOADSTONE_TEST_HBASE", [ordered, scans, bytes] {};
}
