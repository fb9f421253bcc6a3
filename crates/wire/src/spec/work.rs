//! The workload kinds in specs and summaries.

pub mod files;
pub mod records;
pub mod rules;
pub mod sort;
pub mod statements;
pub mod time_series;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::rules::WorkRules;
use crate::merge_rule::Merge;

/// Passes all workload kinds to a macro. Add a new kind here: the variant and type of its spec, its module in the crate
/// `loadstone_kinds`, and its section of the summary. Paths begin here or at a crate, so that a kind needs no imports.
#[macro_export]
macro_rules! workload_kinds {
    ($use_kinds:ident) => {
        $use_kinds! {
            /// Records with fields, as in YCSB's `CoreWorkload`.
            Records(loadstone_load::core::CoreSpec) in record_trials {
                /// Reads that did not find records inserted by other segments. The ledgers of those segments show
                /// whether the inserts had been acknowledged.
                #[serde(default)]
                unsettled: records::Unsettled,
                /// Reads whose whole values were compared with the values written. For the remaining verified reads,
                /// only the versions of the values were compared.
                #[serde(default)]
                compared: u64,
                /// Operations by key range, if they are counted.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                key_ranges: Option<records::KeyRanges>,
            }
            /// YCSB's `TimeSeriesWorkload`.
            TimeSeries(loadstone_load::time_series::TimeSeriesSpec) in series {}
            /// Files, as in Hadoop's TestDFSIO.
            Files(loadstone_storage::file_operations::FilesSpec) in files {
                /// The outcomes of the files; absent for other workload kinds.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                files: Option<files::FilesSummary>,
            }
            /// Statements of a query language.
            Statements(statements::StatementsSpec) in statements {
                /// Reads of cassandra-stress that found no row; absent if there were none.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                missing_rows: Option<statements::MissingRows>,
                /// Rows and partitions of successful statements, by name.
                #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
                statements: std::collections::BTreeMap<String, statements::StatementRows>,
            }
            /// One stage of `TeraGen`, `TeraSort` or `TeraValidate`. A stage has no clients, no due times and no store,
            /// so these parts of the spec have no effect.
            Sort(sort::SortSpec) in sort {
                /// The result of a sort's stage; for sorts only.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                sort: Option<sort::SortSummary>,
            }
        }
    };
}

macro_rules! define_work {
    ($(
        $(#[$doc:meta])* $variant:ident($spec:ty) in $module:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }
    )*) => {
        /// The work of a trial.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        // A process has only one value of this type, so a box would save nothing.
        #[allow(clippy::large_enum_variant)]
        pub enum WorkSpec {
            $($(#[$doc])* $variant($spec),)*
        }

        impl WorkSpec {
            /// The rules of this workload kind.
            pub fn rules(&self) -> &dyn WorkRules {
                match self {
                    $(Self::$variant(work) => work,)*
                }
            }
        }

        /// The sections of a summary that belong to the workload kinds.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Sections {
            $($($(#[$attribute])* pub $field: $type,)*)*
        }

        impl Merge for Sections {
            fn merge(&mut self, other: Self) {
                $($(Merge::merge(&mut self.$field, other.$field);)*)*
            }
        }
    };
}

workload_kinds!(define_work);
