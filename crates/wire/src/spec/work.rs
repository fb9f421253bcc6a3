//! The workload kinds, as specs and summaries know them.

pub mod files;
pub mod records;
pub mod sort;
pub mod statements;
pub mod time_series;

use loadstone_load::Refusal;
use loadstone_load::core::CoreSpec;
use loadstone_load::time_series::TimeSeriesSpec;
use loadstone_storage::work::FilesSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::files::FilesSummary;
use self::records::Unsettled;
use self::sort::{SortSpec, SortSummary};
use self::statements::{MissingRows, StatementsSpec};
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
            Records(CoreSpec) in records {
                /// Reads of records that missed inserts of other segments, whose ledgers show whether the inserts had been
                /// acknowledged.
                #[serde(default)]
                unsettled: Unsettled,
                /// Reads whose whole values were compared with the values written. The remaining verified reads had only the
                /// versions of their values compared.
                #[serde(default)]
                compared: u64,
            }
            /// YCSB's `TimeSeriesWorkload`.
            TimeSeries(TimeSeriesSpec) in series {}
            /// Files, as in Hadoop's TestDFSIO.
            Files(FilesSpec) in files {
                /// The outcomes of the files; absent where the work is not on files.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                files: Option<FilesSummary>,
            }
            /// Statements of a query language.
            Statements(StatementsSpec) in statements {
                /// Reads of cassandra-stress that found no row; absent if there was none.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                missing_rows: Option<MissingRows>,
            }
            /// One stage of `TeraGen`, `TeraSort` or `TeraValidate`. It has no clients, no due times and no store: what the spec says
            /// about these has no effect.
            Sort(SortSpec) in sort {
                /// What a stage of a sort did; sorts only.
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
            /// The rules of its kind.
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
                $($(self.$field.merge(other.$field);)*)*
            }
        }
    };
}

workload_kinds!(define_work);

/// What a spec must know about its work.
pub trait WorkRules {
    /// The table of all operations; for files, their directory; empty where the work names its tables.
    #[expect(clippy::unnecessary_literal_bound, reason = "most kinds return a field")]
    fn table(&self) -> &str {
        ""
    }

    /// Whether a run of it may create a missing database.
    fn creates(&self) -> bool {
        false
    }

    /// Whether it has clients, due times and a store.
    fn has_clients(&self) -> bool {
        true
    }

    /// Refuses work that cannot be run. The refusal has the paths of fields in braces.
    fn validate(&self, spec: &TrialSpec) -> Result<(), Refusal>;

    /// Refuses work by rules that front ends do not share.
    fn check(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Refuses a ledger where there can be none.
    fn validate_ledger(&self, _phase: Phase) -> Result<(), Refusal> {
        Err(Refusal::new("a ledger is for records only", "leave {ledger} out"))
    }
}
