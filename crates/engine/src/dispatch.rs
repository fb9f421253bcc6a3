//! From a store's name to its type.

use std::sync::mpsc::Receiver;

use loadstone_stores::Store;
use loadstone_stores::cassandra::Cassandra;
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

use crate::actor::Work;
use crate::control::{Control, End};
use crate::error::EngineError;
use crate::observer::Observer;
use crate::spec::{TrialSpec, WorkSpec};
use crate::trial;
use crate::workload::{RecordsOf, SeriesOf};

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
    ("cassandra", "Cassandra and ScyllaDB over CQL (hosts)"),
    ("null", "keeps nothing, to measure the driver"),
];

/// Runs a trial to its end.
pub fn run(spec: &TrialSpec, controls: &Receiver<Control>, observer: &mut dyn Observer) -> Result<End, EngineError> {
    let (name, phase, seed) = (&spec.store.name, spec.phase, spec.seed);
    match &spec.work {
        WorkSpec::Records(records) => {
            let workload = RecordsOf::new(records, phase, seed)?;
            visit(name, Trial { spec, workload, controls, observer })?
        }
        WorkSpec::TimeSeries(series) => {
            let workload = SeriesOf::new(series, phase, seed)?;
            visit(name, Trial { spec, workload, controls, observer })?
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
        "cassandra" => visitor.visit::<Cassandra>(),
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

impl<W: Work + Send + Sync> Visitor for Trial<'_, W> {
    type Output = Result<End, EngineError>;

    fn visit<S: Store>(self) -> Self::Output {
        trial::run::<S, W>(self.spec, self.workload, self.controls, self.observer)
    }
}

/// Refuses a store that there is not.
pub fn unknown(name: &str) -> EngineError {
    let names = STORES.iter().map(|(name, _)| *name);
    let error = EngineError::usage(format!("there is no store \"{name}\""));
    let all = names.clone().collect::<Vec<_>>().join(", ");
    match crate::suggest::did_you_mean(name, names) {
        Some(near) => error.hint(format!("did you mean {near}? The stores are {all}")),
        None => error.hint(format!("the stores are {all}")),
    }
}
