//! From a spec's names to types: which store, which workload.

use std::sync::mpsc::Receiver;

use loadstone_load::Workload;
use loadstone_load::core::{CoreLoad, CoreRun};
use loadstone_load::time_series::{TimeSeriesLoad, TimeSeriesRun};
use loadstone_stores::Store;
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

use crate::error::EngineError;
use crate::spec::{Phase, TrialSpec, WorkloadSpec};
use crate::trial::{self, Control, End, Observer};

/// The stores there are, with a line on each.
pub const STORES: &[(&str, &str)] = &[
    ("rocksdb", "RocksDB, loaded at run time (rocksdb.dir)"),
    ("lmdb", "LMDB (lmdb.dir)"),
    ("fjall", "fjall (fjall.dir)"),
    ("redb", "redb (redb.dir)"),
    ("hse", "HSE 2.x or 3.x, loaded at run time (hse.kvdb_home)"),
    ("hbase", "HBase, through its own Java client (columnfamily, -cp CONF)"),
    ("jvm", "any binding of YCSB, in a JVM within the engine (-db CLASS -cp PATH)"),
    ("redis", "Redis and what speaks its protocol (redis.host, redis.port)"),
    ("postgres", "PostgreSQL, a column for each field (db.url)"),
    ("postgrenosql", "PostgreSQL, one JSON object a record (postgrenosql.url)"),
    ("null", "keeps nothing, to measure the driver"),
];

/// Runs a trial to its end.
pub fn run(spec: &TrialSpec, controls: &Receiver<Control>, observer: &mut dyn Observer) -> Result<End, EngineError> {
    let nothing = || {
        EngineError::usage("no operation has a proportion above 0").hint("set readproportion, or another …proportion")
    };
    match (&spec.workload, spec.phase) {
        (WorkloadSpec::Core(core), Phase::Load) => {
            on_store(spec, CoreLoad::new(core.clone(), spec.seed), controls, observer)
        }
        (WorkloadSpec::Core(core), Phase::Run) => {
            on_store(spec, CoreRun::new(core.clone(), spec.seed).ok_or_else(nothing)?, controls, observer)
        }
        (WorkloadSpec::TimeSeries(series), Phase::Load) => {
            let load = TimeSeriesLoad::new(series.clone(), spec.seed).map_err(EngineError::usage)?;
            on_store(spec, load, controls, observer)
        }
        (WorkloadSpec::TimeSeries(series), Phase::Run) => {
            let run = TimeSeriesRun::new(series.clone(), spec.seed).map_err(EngineError::usage)?;
            on_store(spec, run, controls, observer)
        }
    }
}

/// Something that is done with a store, whichever it is.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<S: Store>(self) -> Self::Output;
}

/// Hands the store of this name to a visitor. Here, and in [`STORES`], is where a new store is entered.
pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, EngineError> {
    Ok(match name {
        "rocksdb" => visitor.visit::<RocksDb>(),
        "lmdb" => visitor.visit::<Lmdb>(),
        "fjall" => visitor.visit::<Fjall>(),
        "redb" => visitor.visit::<Redb>(),
        "hse" => visitor.visit::<Hse>(),
        "hbase" => visitor.visit::<HBase>(),
        "jvm" => visitor.visit::<Jvm>(),
        "redis" => visitor.visit::<Redis>(),
        "postgres" => visitor.visit::<Postgres>(),
        "postgrenosql" => visitor.visit::<PostgreNoSql>(),
        "null" => visitor.visit::<Null>(),
        other => return Err(unknown(other)),
    })
}

struct Trial<'a, W> {
    spec: &'a TrialSpec,
    workload: W,
    controls: &'a Receiver<Control>,
    observer: &'a mut dyn Observer,
}

impl<W: Workload + 'static> Visitor for Trial<'_, W> {
    type Output = Result<End, EngineError>;

    fn visit<S: Store>(self) -> Self::Output {
        trial::run::<S, W>(self.spec, self.workload, self.controls, self.observer)
    }
}

fn on_store<W: Workload + 'static>(
    spec: &TrialSpec,
    workload: W,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    visit(&spec.store.name, Trial { spec, workload, controls, observer })?
}

/// Refuses a store that there is not.
pub fn unknown(name: &str) -> EngineError {
    let names = STORES.iter().map(|(name, _)| *name);
    let error = EngineError::usage(format!("there is no store \"{name}\""));
    let all = names.clone().collect::<Vec<_>>().join(", ");
    match crate::doors::ycsb::suggest::did_you_mean(name, names) {
        Some(near) => error.hint(format!("did you mean {near}? The stores are {all}")),
        None => error.hint(format!("the stores are {all}")),
    }
}
