use serde_json::{Value, json};

use super::*;

const VALID: &str = "run null -p recordcount=100 -p operationcount=100 -p seed=1";

fn translate_line(line: &str) -> Result<Translated, EngineError> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let args = Args::parse(&arguments)?;
    translate(&args, &Properties::gather_properties(&args)?)
}

/// The refusal of a spec that is valid except for the given values at these paths.
fn refuse_spec(values: &Value) -> EngineError {
    let spec = translate_line(VALID).unwrap().spec;
    let mut spec = serde_json::to_value(spec).unwrap();
    for (path, value) in values.as_object().unwrap() {
        *spec.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value.clone();
    }
    TrialSpec::parse(&spec.to_string()).unwrap_err()
}

fn hotspot(data: f64, operations: f64) -> Value {
    json!({"/work/keys": {"distribution": "hotspot", "data_fraction": data, "operation_fraction": operations}})
}

fn exponential(percentile: f64, fraction: f64) -> Value {
    json!({"/work/keys": {"distribution": "exponential", "percentile": percentile, "fraction": fraction}})
}

fn open(rate: f64, seconds: f64) -> Value {
    json!({"/pace": {"mode": "open", "arrival": "uniform", "rate": [{"from": rate, "to": rate, "seconds": seconds}]}})
}

/// Invalid properties, the same values in a spec, and the name of the first property or field in the two refusals.
fn invalid_work() -> Vec<(&'static str, Value, [&'static str; 2])> {
    let range = |start: u64, count: u64| json!({"/work/insert_start": start, "/work/insert_count": count});
    let lengths = |name: &str| json!({"/work/field_length": {"distribution": name, "min": 9, "max": 5}});
    let length = |bytes: u64| json!({"/work/field_length": {"distribution": "constant", "bytes": bytes}});
    let zipfian = |theta: f64| json!({"/work/keys": {"distribution": "truezipfian", "theta": theta}});
    let no_operations =
        json!({"/work/mix": {"read": 0, "update": 0, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}});
    vec![
        (
            "requestdistribution=hotspot hotspotdatafraction=5.0",
            hotspot(5.0, 0.8),
            ["hotspotdatafraction", "data_fraction"],
        ),
        (
            "requestdistribution=hotspot hotspotopnfraction=-1",
            hotspot(0.2, -1.0),
            ["hotspotopnfraction", "operation_fraction"],
        ),
        (
            "requestdistribution=exponential exponential.percentile=200",
            exponential(200.0, 0.5),
            ["exponential.percentile", "percentile"],
        ),
        (
            "requestdistribution=exponential exponential.percentile=0",
            exponential(0.0, 0.5),
            ["exponential.percentile", "percentile"],
        ),
        (
            "requestdistribution=exponential exponential.frac=0",
            exponential(95.0, 0.0),
            ["exponential.frac", "work.keys.fraction"],
        ),
        ("requestdistribution=truezipfian zipfian.theta=-0.5", zipfian(-0.5), ["zipfian.theta", "theta"]),
        ("readproportion=-0.5", json!({"/work/mix/read": -0.5}), ["readproportion", "work.mix.read"]),
        ("updateproportion=-1", json!({"/work/mix/update": -1}), ["updateproportion", "work.mix.update"]),
        ("insertproportion=-1", json!({"/work/mix/insert": -1}), ["insertproportion", "work.mix.insert"]),
        ("scanproportion=1e10", json!({"/work/mix/scan": 1e10}), ["scanproportion", "work.mix.scan"]),
        (
            "readmodifywriteproportion=-1",
            json!({"/work/mix/read_modify_write": -1}),
            ["readmodifywriteproportion", "read_modify_write"],
        ),
        ("deleteproportion=-1", json!({"/work/mix/delete": -1}), ["deleteproportion", "work.mix.delete"]),
        ("readproportion=0 updateproportion=0", no_operations, ["no operation", "no operation"]),
        (
            "minscanlength=9 maxscanlength=5",
            json!({"/work/scan_length/min": 9, "/work/scan_length/max": 5}),
            ["minscanlength", "scan_length.min"],
        ),
        (
            "fieldlengthdistribution=uniform minfieldlength=9 fieldlength=5",
            lengths("uniform"),
            ["minfieldlength", "field_length.min"],
        ),
        (
            "fieldlengthdistribution=zipfian minfieldlength=9 fieldlength=5",
            lengths("zipfian"),
            ["minfieldlength", "field_length.min"],
        ),
        ("fieldlength=4611686018427387904", length(1 << 62), ["fieldlength", "work.field_length"]),
        ("fieldcount=0", json!({"/work/field_count": 0}), ["fieldcount", "work.field_count"]),
        ("zeropadding=2000", json!({"/work/zero_padding": 2_000}), ["zeropadding", "zero_padding"]),
        ("insertstart=100", range(100, 0), ["insertstart", "insert_start"]),
        (
            "insertstart=200 recordcount=200",
            json!({"/work/records": 200, "/work/insert_start": 200, "/work/insert_count": 0}),
            ["insertcount", "insert_count"],
        ),
        ("insertstart=50 insertcount=0", range(50, 0), ["insertcount", "insert_count"]),
        ("insertcount=0", range(0, 0), ["insertcount", "insert_count"]),
        ("insertstart=101", range(101, 0), ["recordcount", "work.records"]),
        ("insertstart=60 insertcount=41", range(60, 41), ["recordcount", "work.records"]),
        (
            "dataintegrity=true fieldlengthdistribution=uniform",
            json!({"/work/integrity": true, "/work/field_length": {"distribution": "uniform", "min": 1, "max": 100}}),
            ["dataintegrity", "work.integrity"],
        ),
        (
            "versions=true dataintegrity=true",
            json!({"/work/versions": true, "/work/integrity": true}),
            ["dataintegrity", "work.integrity"],
        ),
        (
            "versions=true fieldlength=20",
            json!({"/work/versions": true, "/work/field_length/bytes": 20}),
            ["versions", "work.versions"],
        ),
    ]
}

/// Invalid properties that do not depend on the workload.
fn invalid_limits() -> Vec<(&'static str, Value, [&'static str; 2])> {
    vec![
        ("threadcount=0", json!({"/clients": 0}), ["threadcount", "clients"]),
        ("threadcount=1000001 operationcount=2000000", json!({"/clients": 1_000_001}), ["threadcount", "clients"]),
        ("segment=0/2", json!({"/segment/n": 2}), ["threadcount", "clients"]),
        ("operationcount=0", json!({"/until/operations": null}), ["never end", "never end"]),
        (
            "maxexecutiontime=1000000001",
            json!({"/until/seconds": 1_000_000_001}),
            ["maxexecutiontime", "until.seconds"],
        ),
        ("warmuptime=-1", json!({"/warmup_seconds": -1}), ["warmuptime", "warmup_seconds"]),
        (
            "core_workload_insertion_retry_interval=-1",
            json!({"/inserts/retry_seconds": -1}),
            ["core_workload_insertion_retry_interval", "inserts.retry_seconds"],
        ),
        (
            "status=true status.interval=1000000001",
            json!({"/interval_ms": 1_000_000_001_000_u64}),
            ["status.interval", "interval_ms"],
        ),
        (
            "measurementtype=histogram histogram.buckets=10000001",
            json!({"/sinks": [{"sink": "ycsb_histogram", "buckets": 10_000_001}]}),
            ["histogram.buckets", "sinks.buckets"],
        ),
        ("target=-5", open(-5.0, 0.0), ["target", "pace.rate"]),
        ("rate.steps=0:1", open(0.0, 1.0), ["rate.steps", "pace.rate"]),
        ("rate.steps=100:-1", open(100.0, -1.0), ["rate.steps", "pace.rate"]),
    ]
}

#[test]
fn invalid_values_are_refused_by_ycsb_and_trial() {
    for (properties, values, [property, field]) in invalid_work().into_iter().chain(invalid_limits()) {
        let line = format!("{VALID} -p {}", properties.replace(' ', " -p "));
        let Err(error) = translate_line(&line) else { panic!("{properties} is accepted") };
        assert!(error.message.contains(property) && error.is_usage(), "{properties}: {error}");
        let (message, hint) = (error.message, error.hint.unwrap());
        assert!(!format!("{message} {hint}").contains(['{', '}']), "{message}; {hint}");
        assert!(!format!("{message} {hint}").contains("work."), "{message}; {hint}");
        let error = refuse_spec(&values);
        assert!(error.message.contains(field) && error.is_usage(), "{values}: {error}");
        let (message, hint) = (error.message, error.hint.unwrap());
        assert!(!format!("{message} {hint}").contains(['{', '}']), "{message}; {hint}");
    }
}

#[test]
fn invalid_time_series_are_refused() {
    let line = format!("{VALID} -p workload=TimeSeriesWorkload -p insertstart=1");
    let spec = serde_json::to_value(translate_line(&line).unwrap().spec).unwrap();
    for (property, path, value) in [
        ("sparsity=1", "/work/sparsity", json!(1)),
        ("readproportion=-1", "/work/mix/read", json!(-1)),
        ("readmodifywriteproportion=1", "/work/mix/read_modify_write", json!(1)),
        ("maxscanlength=0", "/work/scan_length/max", json!(0)),
        ("timestampinterval=0", "/work/interval", json!(0)),
    ] {
        assert_eq!(translate_line(&format!("{line} -p {property}")).unwrap_err().exit(), 2, "{property}");
        let mut spec = spec.clone();
        *spec.pointer_mut(path).unwrap() = value;
        assert_eq!(TrialSpec::parse(&spec.to_string()).unwrap_err().exit(), 2, "{path}");
    }
}

#[test]
fn refusals_name_the_place_of_the_property() {
    let error = translate_line(&format!("{VALID} -p zeropadding=2000")).unwrap_err();
    assert_eq!(error.message, "zeropadding must be at most 1000, got 2000 (-p zeropadding)");
    assert_eq!(error.hint.unwrap(), "change zeropadding");
}

/// The tests run in the directory of the crate, which has no workloads.
#[test]
fn core_workloads_are_built_in() {
    let translated = translate_line("run null -P workloads/workloadb -p operationcount=5").unwrap();
    let spec = serde_json::to_value(&translated.spec).unwrap();
    assert_eq!((&spec["work"]["mix"]["read"], &spec["work"]["mix"]["update"]), (&json!(0.95), &json!(0.05)));
    assert_eq!(
        translated.warnings.first().unwrap(),
        "there is no file workloads/workloadb: using YCSB's workload of that name"
    );
    assert!(translate_line("run null -P workloads/workloadz").unwrap_err().message.contains("cannot read"));
}

#[test]
fn custom_class_replaces_the_named_store() {
    let class = |line: &str| {
        let spec = translate_line(&format!("run {line} -p recordcount=9 -p operationcount=9")).unwrap().spec;
        let class = spec.store.properties.get("jvm.class").cloned().unwrap_or_default();
        format!("{} {class}", spec.store.name)
    };
    for store in ["basic", "redis", "rocksdb", "mongodb", "hbase2", "jvm"] {
        assert_eq!(class(&format!("{store} -db com.acme.MyClient -cp x.jar")), "jvm com.acme.MyClient", "{store}");
    }
    for (line, expected) in [
        ("redis -db site.ycsb.db.RedisClient", "redis "),
        ("redis -db com.yahoo.ycsb.db.RedisClient", "redis "),
        ("redis -db com.acme.RedisClient", "jvm com.acme.RedisClient"),
        ("redis -db site.ycsb.db.MongoDbClient", "jvm site.ycsb.db.MongoDbClient"),
        ("redis -db com.acme.MyClient -p db=site.ycsb.db.RedisClient", "redis "),
        ("hbase12 -db site.ycsb.db.hbase12.HBaseClient12", "hbase "),
        ("basic -db site.ycsb.BasicDB", "null "),
        ("mongodb", "jvm site.ycsb.db.MongoDbClient"),
    ] {
        assert_eq!(class(line), expected, "{line}");
    }
}

#[test]
fn class_in_a_file_warns() {
    let path = std::env::temp_dir().join(format!("loadstone-db-{}", std::process::id()));
    std::fs::write(&path, "db=com.acme.MyClient\nrecordcount=9\noperationcount=9\n").unwrap();
    let translate_store = |store: &str| translate_line(&format!("run {store} -P {}", path.display())).unwrap();
    let (basic, mongodb, jvm) = (translate_store("basic"), translate_store("mongodb"), translate_store("jvm"));
    std::fs::remove_file(&path).unwrap();
    for translated in [&basic, &mongodb] {
        let warnings = &translated.warnings;
        assert!(warnings.iter().any(|text| text.ends_with("use -db com.acme.MyClient")), "{warnings:?}");
    }
    assert_eq!(mongodb.spec.store.properties["jvm.class"], "site.ycsb.db.MongoDbClient");
    assert_eq!(jvm.spec.store.properties["jvm.class"], "com.acme.MyClient");
    assert!(jvm.warnings.is_empty());
}

#[test]
fn scaled_proportions_are_stated() {
    let warnings = |line: &str| translate_line(&format!("{VALID} {line}")).unwrap().warnings;
    assert_eq!(
        warnings("-p readproportion=0.9 -p updateproportion=0.5"),
        ["the proportions sum to 1.4, so they are scaled: 64.3 % READ, 35.7 % UPDATE"]
    );
    assert!(warnings("-p readproportion=0.7 -p updateproportion=0.2 -p insertproportion=0.1").is_empty());
    assert!(translate_line("load null -p recordcount=9 -p readproportion=9").unwrap().warnings.is_empty());
}
