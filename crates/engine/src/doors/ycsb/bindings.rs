//! Which store a name of YCSB's means.

use crate::dispatch;
use crate::error::EngineError;

/// Names of YCSB 0.17.0's bindings that no store of ours answers to: they run in a JVM, as they are.
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
        "hbase098" | "hbase10" | "hbase12" | "hbase14" | "hbase2" | "hbase20" => Ok("hbase"),
        other if OTHERS.contains(&other) => Ok("jvm"),
        other => Err(dispatch::unknown(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::ycsb::binding_classes::class_of;

    #[test]
    fn every_binding_without_a_store_has_a_class() {
        for name in OTHERS {
            assert_eq!(resolve(name).unwrap(), "jvm");
            assert!(class_of(name).is_some_and(|class| class.starts_with("site.ycsb.")), "{name}");
        }
    }
}
