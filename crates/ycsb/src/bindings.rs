//! Maps YCSB's binding names to stores, and to the classes of bindings that run in the JVM store.

use std::fmt::Write as _;

use loadstone_wire::error::EngineError;
use loadstone_wire::suggest::did_you_mean;

/// Finds the store for a name and for the class of the last `-db`. As in YCSB, the class takes precedence: if it is not
/// the binding of the named store, it runs in the `jvm` store.
pub fn find_store(name: &str, class: Option<&str>) -> Result<&'static str, EngineError> {
    let store = resolve(name)?;
    Ok(match class {
        Some(class) if !is_own_class(store, class) => "jvm",
        _ => store,
    })
}

/// Finds the store for a name.
pub fn resolve(name: &str) -> Result<&'static str, EngineError> {
    if let Some(about) = loadstone_registry::describe_store(name) {
        return Ok(about.name);
    }
    match name {
        // YCSB's bindings that do nothing.
        "basic" | "basicts" => Ok("null"),
        // Other JDBC databases are refused because of their URLs.
        "jdbc" => Ok("postgres"),
        // YCSB still accepts `cassandra2-cql`, its former name for Cassandra 2.
        "cassandra-cql" | "cassandra2-cql" | "scylla" => Ok("cassandra"),
        "hbase098" | "hbase10" | "hbase12" | "hbase14" | "hbase2" | "hbase20" => Ok("hbase"),
        other if class_of(other).is_some() => Ok("jvm"),
        other => {
            let error = loadstone_registry::ENGINE_STORES.refuse_name(other);
            let hint = error.hint.clone().unwrap_or_default();
            let message = format!("{}, and no binding of this name is known", error.message);
            let near = list_near(other).join(" or ");
            let hint = if near.is_empty() || hint.starts_with("did") {
                hint
            } else {
                format!("did you mean {near}? {}", hint.replacen("the stores", "The stores", 1))
            };
            Err(EngineError::usage(message).hint(format!("{hint}; {ANY_BINDING}")))
        }
    }
}

/// The names of bindings that a misspelt or shortened name may mean.
fn list_near(word: &str) -> Vec<&'static str> {
    let names = || CLASSES.iter().map(|(name, _)| *name);
    let stem: String = word.chars().take(STEM).collect::<String>().to_lowercase();
    let same_stem = names().filter(|name| stem.chars().count() == STEM && name.starts_with(&stem));
    did_you_mean(word, names()).map_or_else(|| same_stem.collect(), |near| vec![near])
}

/// Length of the prefix that similar names share: `couchdb` is similar to `couchbase`, `cosmos` is not.
const STEM: usize = 4;

/// How to use a binding that has no name here.
const ANY_BINDING: &str = "any other binding of YCSB runs in the JVM host: jvm -db site.ycsb.db.CLASS -cp 'YCSB/lib/*:YCSB/NAME-binding/lib/*'";

/// Puts the folder of a binding in YCSB's distribution into a hint about the class path.
pub fn name_folder(error: EngineError, name: &str) -> EngineError {
    // `bin/ycsb` takes the part before the first dash: the folder of `mongodb-async` is `mongodb-binding`.
    let folder = name.split('-').next().unwrap_or(name);
    match error.hint.clone() {
        Some(hint) if class_of(name).is_some() => {
            error.hint(hint.replace("NAME-binding", &format!("{folder}-binding")))
        }
        _ => error,
    }
}

/// A list of the stores, one per line, for `--help`.
pub fn list_stores() -> String {
    let mut text = String::from("stores (docs/reference/stores; -p sets their properties):\n");
    for about in loadstone_registry::store_descriptions() {
        let _ = writeln!(text, "  {:<15} {}", about.name, about.line);
    }
    text + "  mongodb, s3, …  the other bindings of YCSB run, by name, in the JVM host: -cp names the jars\n"
}

/// The class, in YCSB 0.17.0, of a binding that has no store here, or that users can choose instead of its store.
pub fn class_of(name: &str) -> Option<String> {
    let (_, class) = CLASSES.iter().find(|(known, _)| *known == name)?;
    Some(format!("site.ycsb.{class}"))
}

/// The names of bindings, with their classes below `site.ycsb`.
const CLASSES: &[(&str, &str)] = &[
    ("accumulo", "db.accumulo.AccumuloClient"),
    ("accumulo1.6", "db.accumulo.AccumuloClient"),
    ("accumulo1.7", "db.accumulo.AccumuloClient"),
    ("accumulo1.8", "db.accumulo.AccumuloClient"),
    ("aerospike", "db.AerospikeClient"),
    ("arangodb", "db.arangodb.ArangoDBClient"),
    ("arangodb3", "db.arangodb.ArangoDBClient"),
    ("asynchbase", "db.AsyncHBaseClient"),
    ("azurecosmos", "db.AzureCosmosClient"),
    ("azuretablestorage", "db.azuretablestorage.AzureClient"),
    ("cassandra-cql", "db.CassandraCQLClient"),
    ("cassandra2-cql", "db.CassandraCQLClient"),
    ("cloudspanner", "db.cloudspanner.CloudSpannerClient"),
    ("couchbase", "db.CouchbaseClient"),
    ("couchbase2", "db.couchbase2.Couchbase2Client"),
    ("crail", "db.crail.CrailClient"),
    ("dynamodb", "db.DynamoDBClient"),
    ("elasticsearch", "db.ElasticsearchClient"),
    ("elasticsearch5", "db.elasticsearch5.ElasticsearchClient"),
    ("elasticsearch5-rest", "db.elasticsearch5.ElasticsearchRestClient"),
    ("foundationdb", "db.foundationdb.FoundationDBClient"),
    ("geode", "db.GeodeClient"),
    ("googlebigtable", "db.GoogleBigtableClient"),
    ("googledatastore", "db.GoogleDatastoreClient"),
    ("griddb", "db.griddb.GridDBClient"),
    ("hypertable", "db.HypertableClient"),
    ("ignite", "db.ignite.IgniteClient"),
    ("ignite-sql", "db.ignite.IgniteSqlClient"),
    ("infinispan", "db.InfinispanClient"),
    ("infinispan-cs", "db.InfinispanRemoteClient"),
    ("kudu", "db.KuduYCSBClient"),
    ("maprdb", "db.mapr.MapRDBClient"),
    ("maprjsondb", "db.mapr.MapRJSONDBClient"),
    ("memcached", "db.MemcachedClient"),
    ("mongodb", "db.MongoDbClient"),
    ("mongodb-async", "db.AsyncMongoDbClient"),
    ("nosqldb", "db.NoSqlDbClient"),
    ("orientdb", "db.OrientDBClient"),
    ("rados", "db.RadosClient"),
    ("rest", "webservice.rest.RestClient"),
    ("riak", "db.riak.RiakKVClient"),
    ("s3", "db.S3Client"),
    ("solr", "db.solr.SolrClient"),
    ("solr6", "db.solr6.SolrClient"),
    ("tablestore", "db.tablestore.TableStoreClient"),
    ("tarantool", "db.TarantoolClient"),
    ("voltdb", "db.voltdb.VoltClient4"),
];

/// Whether a class is YCSB's binding for the system that a store measures, in any version of YCSB.
fn is_own_class(store: &str, class: &str) -> bool {
    if store == "jvm" {
        return true;
    }
    // The package was `com.yahoo.ycsb` before YCSB 0.16.
    let Some(name) = class.strip_prefix("site.ycsb.").or_else(|| class.strip_prefix("com.yahoo.ycsb.")) else {
        return false;
    };
    let name = name.rsplit('.').next().unwrap_or(name);
    match store {
        "null" => matches!(name, "BasicDB" | "BasicTSDB"),
        "rocksdb" => name == "RocksDBClient",
        "hse" => matches!(name, "HseClient" | "HseYcsbClient"),
        "redis" => name == "RedisClient",
        "postgres" => name == "JdbcDBClient",
        "postgrenosql" => name == "PostgreNoSQLDBClient",
        "cassandra" => matches!(name, "CassandraCQLClient" | "ScyllaCQLClient"),
        // Each version of HBase had a separate class: HBaseClient10, HBaseClient12, HBaseClient2.
        "hbase" => name.trim_end_matches(|c: char| c.is_ascii_digit()) == "HBaseClient",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_without_a_store_uses_the_jvm() {
        for name in ["mongodb", "s3", "accumulo1.8"] {
            assert_eq!(resolve(name).unwrap(), "jvm");
        }
        assert_eq!(resolve("cassandra-cql").unwrap(), "cassandra", "although it has a class too");
        let path = EngineError::usage("").hint("-cp '/opt/ycsb/NAME-binding/lib/*'");
        let named = |name| name_folder(path.clone(), name).hint.unwrap();
        assert_eq!(named("mongodb-async"), "-cp '/opt/ycsb/mongodb-binding/lib/*'");
        assert_eq!(named("jvm"), "-cp '/opt/ycsb/NAME-binding/lib/*'");
        let hint = resolve("mongdb").unwrap_err().hint.unwrap();
        assert!(hint.contains("JVM host: jvm -db site.ycsb.db.CLASS -cp "), "{hint}");
    }

    #[test]
    fn near_bindings_are_named() {
        for (name, near) in [
            ("couchdb", "did you mean couchbase or couchbase2? The stores are "),
            ("mongo", "did you mean mongodb or mongodb-async? "),
            ("mongdb", "did you mean mongodb? "),
            ("redsi", "did you mean redis? "),
            ("xyzzy", "the stores are "),
        ] {
            let error = resolve(name).unwrap_err();
            assert_eq!(error.message, format!("there is no store \"{name}\", and no binding of this name is known"));
            assert!(error.hint.clone().unwrap().starts_with(near), "{error}");
        }
    }
}
