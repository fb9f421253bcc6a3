//! The workload kinds in specs and summaries.

pub mod files;
pub mod records;
pub mod sort;
pub mod statements;
pub mod time_series;

use std::collections::BTreeMap;

use loadstone_load::Refusal;
use loadstone_load::core::CoreSpec;
use loadstone_load::time_series::TimeSeriesSpec;
use loadstone_storage::work::FilesSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::files::FilesSummary;
use self::records::Unsettled;
use self::sort::{SortSpec, SortSummary};
use self::statements::{MissingRows, StatementRows, StatementsSpec};
use super::{Phase, TrialSpec};
use crate::error::EngineError;
use crate::merge::Merge;

/// Passes all workload kinds to a macro. Add a new kind here: the variant and type of its spec, its module in the crate
/// `loadstone_kinds`, and its section of the summary.
#[macro_export]
macro_rules! workload_kinds {
    ($use_kinds:ident) => {
        $use_kinds! {
            /// Records with fields, as in YCSB's `CoreWorkload`.
            Records(CoreSpec) in record_trials {
                /// Reads of records that missed inserts of other segments; the other ledgers show whether the inserts
                /// had been acknowledged.
                #[serde(default)]
                unsettled: Unsettled,
                /// Reads whose whole values were compared with the values written. The remaining verified reads had only the versions
                /// of their values compared.
                #[serde(default)]
                compared: u64,
            }
            /// YCSB's `TimeSeriesWorkload`.
            TimeSeries(TimeSeriesSpec) in series {}
            /// Files, as in Hadoop's TestDFSIO.
            Files(FilesSpec) in files {
                /// The outcomes of the files; absent for other workload kinds.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                files: Option<FilesSummary>,
            }
            /// Statements of a query language.
            Statements(StatementsSpec) in statements {
                /// Reads of cassandra-stress that found no row; absent if there were none.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                missing_rows: Option<MissingRows>,
                /// Rows and partitions of successful statements, by name.
                #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
                statements: BTreeMap<String, StatementRows>,
            }
            /// One stage of `TeraGen`, `TeraSort` or `TeraValidate`. It has no clients, no due times and no store:
            /// these parts of the spec have no effect.
            Sort(SortSpec) in sort {
                /// The result of a stage of a sort; sorts only.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                sort: Option<SortSummary>,
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
        // There is one per process: a box would save nothing.
        #[allow(clippy::large_enum_variant)]
        pub enum WorkSpec {
            $($(#[$doc])* $variant($spec),)*
        }

        impl WorkSpec {
            /// The rules of its workload kind.
            pub fn rules(&self) -> &dyn WorkRules {
                match self {
                    $(Self::$variant(work) => work,)*
                }
            }
        }

        /// The sections of a summary that belong to one workload kind.
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

/// The rules of a workload kind for a spec.
pub trait WorkRules {
    /// The table of all operations; for files, their directory; empty if the work names its tables.
    #[expect(clippy::unnecessary_literal_bound, reason = "most kinds return a field")]
    fn table(&self) -> &str {
        ""
    }

    /// Whether a run of this work may create a missing database.
    fn creates(&self) -> bool {
        false
    }

    /// Whether this work has clients, due times and a store.
    fn has_clients(&self) -> bool {
        true
    }

    /// Refuses work that cannot be run. The refusal has the paths of fields in braces.
    fn validate(&self, spec: &TrialSpec) -> Result<(), Refusal>;

    /// Refuses work by rules that apply only without a front end.
    fn check(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Refuses a ledger for work that cannot have one.
    fn validate_ledger(&self, _phase: Phase) -> Result<(), Refusal> {
        Err(Refusal::new("this workload kind has no ledger", "leave {ledger} out"))
    }
}
