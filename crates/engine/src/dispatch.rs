//! From a store's name to its type.

use std::sync::mpsc::Receiver;

use loadstone_storage::store::{FileStore, HdfsStore, NullFiles};
use loadstone_stores::cassandra::Cassandra;
use loadstone_stores::fjall::Fjall;
use loadstone_stores::hbase::HBase;
use loadstone_stores::hse::Hse;
use loadstone_stores::jvm::Jvm;
use loadstone_stores::lmdb::Lmdb;
use loadstone_stores::null::{Null, NullSession};
use loadstone_stores::postgres::{PostgreNoSql, Postgres};
use loadstone_stores::redb::Redb;
use loadstone_stores::redis::Redis;
use loadstone_stores::rocksdb::RocksDb;
use loadstone_stores::{About, RecordStore, Store};

use crate::control::{Control, End};
use crate::error::EngineError;
use crate::observer::Observer;
use crate::spec::{TrialSpec, WorkSpec};
use crate::trial;
use crate::workload::{FilesOf, RecordsOf, SeriesOf};

/// Lists the stores, once.
macro_rules! stores {
    ($($store:ty),+ $(,)?) => {
        /// The stores of records.
        pub const STORES: &[About] = &[$(<$store as Store>::ABOUT),+];

        /// Passes the store with this name to a visitor.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, EngineError> {
            $(if name == <$store as Store>::ABOUT.name {
                return Ok(visitor.visit::<$store>());
            })+
            Err(unknown(name))
        }
    };
}

/// The stores of files.
pub const FILE_STORES: &[About] = &[FileStore::ABOUT, HdfsStore::ABOUT];

// Add a new store here.
stores!(RocksDb, Lmdb, Fjall, Redb, Hse, HBase, Jvm, Redis, Postgres, PostgreNoSql, Cassandra, Null);

/// The description of the store with this name.
pub fn about(name: &str) -> Option<&'static About> {
    STORES.iter().chain(FILE_STORES).find(|about| about.name == name)
}

/// Runs a trial to its end.
pub fn run(spec: &TrialSpec, controls: &Receiver<Control>, observer: &mut dyn Observer) -> Result<End, EngineError> {
    let (name, phase, seed) = (&spec.store.name, spec.phase, spec.seed);
    match &spec.work {
        WorkSpec::Records(records) => {
            let workload = RecordsOf::new(records, phase, seed, spec.run)?;
            visit(name, Trial { spec, workload, controls, observer })?
        }
        WorkSpec::TimeSeries(series) => {
            let workload = SeriesOf::new(series, phase, seed)?;
            visit(name, Trial { spec, workload, controls, observer })?
        }
        WorkSpec::Files(files) => {
            let workload = FilesOf::new(files, seed)?;
            match name.as_str() {
                "file" => trial::run::<FileStore, NullFiles, _>(spec, workload, controls, observer),
                "hdfs" => trial::run::<HdfsStore, NullFiles, _>(spec, workload, controls, observer),
                other => Err(EngineError::usage(format!("the store \"{other}\" does not hold files"))
                    .hint("the stores of files are file and hdfs")),
            }
        }
        // `trial` has a separate driver for sorts.
        WorkSpec::Sort(_) => {
            Err(EngineError::usage("a sort has no operations").hint("use loadstone-engine trial to run a stage of it"))
        }
    }
}

/// A function that is generic over the type of the store.
pub trait Visitor {
    /// What the function returns.
    type Output;
    /// Calls the function with the store of type `S`.
    fn visit<S: RecordStore>(self) -> Self::Output;
}

struct Trial<'a, W> {
    spec: &'a TrialSpec,
    workload: W,
    controls: &'a Receiver<Control>,
    observer: &'a mut dyn Observer,
}

impl Visitor for Trial<'_, RecordsOf> {
    type Output = Result<End, EngineError>;

    fn visit<S: RecordStore>(self) -> Self::Output {
        trial::run::<S, NullSession, _>(self.spec, self.workload, self.controls, self.observer)
    }
}

impl Visitor for Trial<'_, SeriesOf> {
    type Output = Result<End, EngineError>;

    fn visit<S: RecordStore>(self) -> Self::Output {
        trial::run::<S, NullSession, _>(self.spec, self.workload, self.controls, self.observer)
    }
}

/// The error for an unknown store.
pub fn unknown(name: &str) -> EngineError {
    let names = STORES.iter().map(|about| about.name);
    let error = EngineError::usage(format!("there is no store \"{name}\""));
    let all = names.clone().collect::<Vec<_>>().join(", ");
    match crate::suggest::did_you_mean(name, names) {
        Some(near) => error.hint(format!("did you mean {near}? The stores are {all}")),
        None => error.hint(format!("the stores are {all}")),
    }
}
