//! Which store a name of YCSB's means.

use crate::dispatch;
use crate::error::EngineError;

/// Names of YCSB 0.17.0's bindings that no store answers to yet.
const OTHERS: &[&str] = &[
    "accumulo",
    "accumulo1.6",
    "accumulo1.7",
    "accumulo1.8",
    "aerospike",
    "arangodb",
    "arangodb3",
    "asynchbase",
    "azurecosmos",
    "azuretablestorage",
    "cloudspanner",
    "couchbase",
    "couchbase2",
    "crail",
    "dynamodb",
    "elasticsearch",
    "elasticsearch5",
    "elasticsearch5-rest",
    "foundationdb",
    "geode",
    "googlebigtable",
    "googledatastore",
    "griddb",
    "hbase098",
    "hbase10",
    "hbase12",
    "hbase14",
    "hbase20",
    "hypertable",
    "ignite",
    "ignite-sql",
    "infinispan",
    "infinispan-cs",
    "kudu",
    "maprdb",
    "maprjsondb",
    "memcached",
    "mongodb",
    "mongodb-async",
    "nosqldb",
    "orientdb",
    "rados",
    "rest",
    "riak",
    "s3",
    "solr",
    "solr6",
    "tablestore",
    "tarantool",
    "voltdb",
];

/// Our store for a name.
pub fn resolve(name: &str) -> Result<&'static str, EngineError> {
    if let Some((own, _)) = dispatch::STORES.iter().find(|(own, _)| *own == name) {
        return Ok(own);
    }
    match name {
        // YCSB's own store that does nothing.
        "basic" | "basicts" => Ok("null"),
        // Its other databases are refused by their URL.
        "jdbc" => Ok("postgres"),
        // The latter is what YCSB called it for Cassandra 2, and still takes.
        "cassandra-cql" | "cassandra2-cql" | "scylla" => Ok("cassandra"),
        other if OTHERS.contains(&other) => {
            let all: Vec<&str> = dispatch::STORES.iter().map(|(name, _)| *name).collect();
            Err(EngineError::usage(format!("YCSB's binding {other} has no store here yet"))
                .hint(format!("the stores are {}", all.join(", "))))
        }
        other => Err(dispatch::unknown(other)),
    }
}
