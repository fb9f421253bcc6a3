//! Finds the type of a store by its name, and the workload kind of a spec.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use loadstone_session::Options;
use loadstone_storage::store::{FileStore, HdfsStore};
use loadstone_stores::cassandra::{Cassandra, ColumnDescription, describe_statements, describe_tables, execute_script};
use loadstone_stores::fjall::Fjall;
use loadstone_stores::hbase::HBase;
use loadstone_stores::hse::Hse;
use loadstone_stores::jvm::Jvm;
use loadstone_stores::lmdb::Lmdb;
use loadstone_stores::null::Null;
use loadstone_stores::postgres::{PostgreNoSql, Postgres};
use loadstone_stores::redb::Redb;
use loadstone_stores::redis::Redis;
use loadstone_stores::rocksdb::RocksDb;
use loadstone_stores::{About, Store};
use loadstone_stress::columns::{ColumnsSpec, Part, Plan, SchemaColumn, SpecFault, TableSchema};
use loadstone_stress::spec::Invalid;

use loadstone_kinds::columns::{ColumnsWork, OperationCounts};
use loadstone_kinds::records::target::RecordTarget;
use loadstone_kinds::statement_actor::SessionTarget;
use loadstone_kinds::stores::{StatementTarget, Stores, Trial};
use loadstone_measure::control::{Control, End};
use loadstone_measure::observer::Observer;
use loadstone_measure::trial;
use loadstone_wire::error::EngineError;
use loadstone_wire::output::print_err;
use loadstone_wire::spec::{TrialSpec, WorkSpec};

/// The record stores. Add a new store here.
pub static STORES: &[RecordTarget] = &[
    RecordTarget::new_embedded::<RocksDb>(),
    RecordTarget::new_embedded::<Lmdb>(),
    RecordTarget::new_embedded::<Fjall>(),
    RecordTarget::new_embedded::<Redb>(),
    RecordTarget::new_embedded::<Hse>(),
    RecordTarget::new_remote::<HBase>(),
    RecordTarget::new_remote::<Jvm>(),
    RecordTarget::new_remote::<Redis>(),
    RecordTarget::new_remote::<Postgres>(),
    RecordTarget::new_remote::<PostgreNoSql>(),
    RecordTarget::new_remote::<Cassandra>(),
    RecordTarget::new_instant::<Null>(),
];

/// The file stores.
pub const FILE_STORES: &[About] = &[FileStore::ABOUT, HdfsStore::ABOUT];

/// The descriptions of the record stores.
pub fn store_descriptions() -> impl Iterator<Item = &'static About> + Clone {
    STORES.iter().map(|target| &target.store.about)
}

/// The description of the store with this name.
pub fn describe_store(name: &str) -> Option<&'static About> {
    store_descriptions().chain(FILE_STORES).find(|about| about.name == name)
}

/// The stores that this engine contains.
pub static ENGINE_STORES: Stores = Stores {
    records: STORES,
    statements: &[StatementTarget {
        name: Cassandra::ABOUT.name,
        stress: |definitions| Box::new(SessionTarget::<Cassandra>::new(definitions)),
        columns: |spec, columns, controls, observer| {
            run_columns(spec, columns, &Arc::new(OperationCounts::new(columns.operations.len())), controls, observer)
        },
    }],
};

macro_rules! run_kinds {
    ($($(#[$doc:meta])* $variant:ident($spec:ty) in $module:ident $section:tt)*) => {
        /// Runs a trial to its end.
        pub fn run(
            spec: &TrialSpec,
            controls: &Receiver<Control>,
            observer: &mut dyn Observer,
        ) -> Result<End, EngineError> {
            let trial = Trial { spec, stores: &ENGINE_STORES, controls, observer };
            match &spec.work {
                $(WorkSpec::$variant(work) => loadstone_kinds::$module::run_trial(work, trial),)*
            }
        }
    };
}

loadstone_wire::workload_kinds!(run_kinds);

/// Runs a trial of statements with generated values, and counts their rows during the trial. The server determines the
/// types of the columns, so the tables are created and their definitions read before the trial.
pub fn run_columns(
    spec: &TrialSpec,
    columns: &ColumnsSpec,
    counts: &Arc<OperationCounts>,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    let options = Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability,
        clients: 1,
        ..Options::default()
    };
    // One engine creates the tables for all engines.
    if spec.segment.k == 0 && !columns.definitions.is_empty() {
        let defined = execute_script(&options, &columns.definitions)?;
        defined.notes.iter().for_each(|note| print_err(&format!("note: {note}\n")));
    }
    let (plan, tokens) = plan_columns(&options, columns).map_err(|mut faults| faults.remove(0).error)?;
    let work = ColumnsWork::new(columns, plan, &tokens, spec.seed, Arc::clone(counts))?;
    trial::run_trial(spec, work, &SessionTarget::<Cassandra>::new(&[]), controls, observer)
}

/// A fault in one part of a spec, with the error that a run of this spec returns.
#[derive(Debug)]
pub struct ColumnsFault {
    /// The faulty part; `None` if the server cannot be queried.
    pub part: Option<Part>,
    /// The reason, without the path in the spec.
    pub reason: String,
    /// The error, with the path in the spec.
    pub error: EngineError,
}

impl From<SpecFault> for ColumnsFault {
    fn from(SpecFault { part, invalid: Invalid { field, reason } }: SpecFault) -> Self {
        let error = EngineError::usage(format!("work.{field}: {reason}")).hint("change the profile or the statement");
        Self { part: Some(part), reason, error }
    }
}

impl From<EngineError> for ColumnsFault {
    fn from(error: EngineError) -> Self {
        Self { part: None, reason: error.message.clone(), error }
    }
}

/// The plan of a spec for the server's tables, and the tokens of the ring.
///
/// # Errors
/// Returns all faults in the operations, or the first fault elsewhere. The list is never empty.
pub fn plan_columns(options: &Options, columns: &ColumnsSpec) -> Result<(Plan, Vec<i64>), Vec<ColumnsFault>> {
    let single = |fault: ColumnsFault| vec![fault];
    let names: Vec<(&str, &str)> =
        columns.tables.iter().map(|table| (table.keyspace.as_str(), table.table.as_str())).collect();
    let (tables, tokens) = describe_tables(options, &names).map_err(|error| single(error.into()))?;
    let schemas: Vec<TableSchema> = tables.into_iter().map(to_schema).collect();
    let mut plan = columns.plan(&schemas).map_err(|fault| single(fault.into()))?;
    let texts: Vec<String> = plan.operations.iter().map(|operation| operation.text.clone()).collect();
    let described = describe_statements(options, &texts).map_err(|error| single(error.into()))?;
    let mut faults = Vec::new();
    for (at, statement) in described.into_iter().enumerate() {
        match statement {
            Ok(statement) => {
                let bound = plan.bind(columns, at, &statement.markers, &statement.columns);
                faults.extend(bound.err().map(ColumnsFault::from));
            }
            Err(error) => {
                let part = Some(Part::Operation(plan.operations[at].name.clone()));
                faults.push(ColumnsFault { part, ..error.into() });
            }
        }
    }
    if faults.is_empty() { Ok((plan, tokens)) } else { Err(faults) }
}

fn to_schema(columns: Vec<ColumnDescription>) -> TableSchema {
    let column = |column: ColumnDescription| SchemaColumn {
        name: column.name,
        role: column.role,
        position: column.position,
        kind: column.kind,
        is_frozen: column.is_frozen,
    };
    TableSchema { columns: columns.into_iter().map(column).collect() }
}
