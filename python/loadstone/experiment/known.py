"""The names that an experiment may use: stores and properties. The engine's tables are the source; a test compares."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# Each store with its properties, as in docs/reference/stores.
STORE_PROPERTIES: dict[str, tuple[str, ...]] = {
    "rocksdb": (
        "rocksdb.dir",
        "rocksdb.version",
        "rocksdb.library",
        "rocksdb.optionsfile",
        "rocksdb.options",
    ),
    "lmdb": (
        "lmdb.dir",
        "lmdb.mapsize",
    ),
    "fjall": (
        "fjall.dir",
        "fjall.cachesize",
    ),
    "redb": (
        "redb.dir",
        "redb.cachesize",
    ),
    "hse": (
        "hse.kvdb_home",
        "hse.config",
        "hse.cursor_pfx_len",
        "hse.library",
        "hse.kvdb.home",
        "hse.gparams",
        "hse.kvdb.cparams",
        "hse.kvdb.rparams",
        "hse.kvs.cparams",
        "hse.kvs.rparams",
        "hse.mpool_name",
        "hse.params",
        "hse.config_path",
    ),
    "hbase": (
        "columnfamily",
        "durability",
        "clientbuffering",
        "writebuffersize",
        "hbase.usepagefilter",
        "principal",
        "keytab",
        "hbase.conf",
        "hbase.lib",
        "hbase.*",
        "zookeeper.*",
        "jvm.classpath",
        "jvm.args",
        "jvm.host",
    ),
    "jvm": (
        "jvm.class",
        "jvm.classpath",
        "jvm.args",
        "jvm.networked",
        "jvm.host",
        "*",
    ),
    "redis": (
        "redis.host",
        "redis.port",
        "redis.password",
        "redis.cusername",
        "redis.cpassword",
        "redis.timeout",
        "redis.cluster",
        "redis.pipeline",
    ),
    "postgres": (
        "db.url",
        "db.user",
        "db.passwd",
        "db.driver",
        "db.batchsize",
        "jdbc.autocommit",
        "jdbc.batchupdateapi",
        "jdbc.fetchsize",
        "postgres.timeout",
        "postgres.connecttimeout",
    ),
    "postgrenosql": (
        "postgrenosql.url",
        "postgrenosql.user",
        "postgrenosql.passwd",
        "postgrenosql.autocommit",
        "db.driver",
        "postgres.timeout",
        "postgres.connecttimeout",
    ),
    "cassandra": (
        "hosts",
        "port",
        "cassandra.keyspace",
        "cassandra.username",
        "cassandra.password",
        "cassandra.readconsistencylevel",
        "cassandra.writeconsistencylevel",
        "cassandra.maxconnections",
        "cassandra.coreconnections",
        "cassandra.connecttimeoutmillis",
        "cassandra.readtimeoutmillis",
        "cassandra.tracing",
        "cassandra.useSSL",
        "cassandra.localdc",
        "cassandra.connections",
    ),
    "null": (),
}
STORES = tuple(STORE_PROPERTIES)
# Stores whose data are on servers, with the system of `loadstone systems` that serves them; "" where any may.
NETWORKED: dict[str, str] = {
    "cassandra": "cassandra",
    "redis": "redis",
    "postgres": "postgres",
    "postgrenosql": "postgres",
    "hbase": "hbase",
    "jvm": "",
}
# Systems that work on another one.
OVER = {"hbase": "hdfs"}
# Stores that keep no files of their own.
WITHOUT_FILES = frozenset({"null", "basic", *NETWORKED})
# The properties that take the hosts of `attach` and their port.
ADDRESSES: dict[str, tuple[str, str]] = {
    "cassandra": ("hosts", "port"),
    "redis": ("redis.host", "redis.port"),
}
# Where a store's data go: the lab gives each trial a place of its own.
PLACES = frozenset({*(f"{store}.dir" for store in STORES), "hse.kvdb_home", "hse.kvdb.home"})

# YCSB's own and the engine's, as in docs/reference/ycsb-properties.md.
PROPERTIES = words("""
    workload db recordcount operationcount insertcount insertstart threadcount target maxexecutiontime status
    status.interval label exporter exportfile measurementtype measurement.interval measurement.histogram.verbose
    hdrhistogram.percentiles hdrhistogram.fileoutput hdrhistogram.output.path histogram.buckets
    timeseries.granularity measurement.raw.output_file measurement.raw.no_summary reportlatencyforeacherror
    latencytrackederrors spin.sleep table fieldcount fieldnameprefix fieldlength minfieldlength
    fieldlengthdistribution fieldlengthhistogram readallfields writeallfields dataintegrity readproportion
    updateproportion insertproportion scanproportion readmodifywriteproportion requestdistribution zeropadding
    insertorder minscanlength maxscanlength scanlengthdistribution hotspotdatafraction hotspotopnfraction
    exponential.percentile exponential.frac core_workload_insertion_retry_limit
    core_workload_insertion_retry_interval core_workload_insertion_keep_going_on_error disksize storageages
    occupancy timestampunits timestampinterval timestampkey valuekey tagcount tagcardinality tagkeylength
    tagvaluelength tagpairdelimiter deletedelimiter randomwritetimestamporder randomtimeseriesorder valuetype
    sparsity delayedseries delayedintervals querytimespan queryrandomtimespan querytimespandelimiter groupbyfunction
    groupbykey groupbykeys downsamplingfunction downsamplingkey downsamplinginterval deleteproportion seed
    warmuptime arrival rate.ramp rate.steps segment durability zipfian.theta insertlag executors settle ledger versions
    failures.tolerated dotransactions measurement.trackjvm debug test
    """)
# Properties that a key of the experiment stands for.
KEYS: dict[str, str] = {
    "threadcount": "clients",
    "target": "rate",
    "operationcount": "measure.operations",
    "maxexecutiontime": "measure.duration",
    "warmuptime": "measure.warmup",
    "settle": "measure.settle",
    "dataintegrity": "measure.verify",
    "durability": "durability",
    "arrival": "arrival",
    "seed": "seed",
    "db": "systems",
}
# Properties of a single command line: what it prints, which share it runs, when it fails.
OF_A_COMMAND = words("""
    status status.interval label exporter exportfile measurementtype measurement.interval measurement.histogram.verbose
    hdrhistogram.percentiles hdrhistogram.fileoutput hdrhistogram.output.path histogram.buckets timeseries.granularity
    measurement.raw.output_file measurement.raw.no_summary reportlatencyforeacherror latencytrackederrors segment
    failures.tolerated dotransactions measurement.trackjvm debug test ledger versions
    """)
# Rates that move: as good as `rate`, for due times.
MOVING_RATES = frozenset({"rate.ramp", "rate.steps"})
# Properties that shape a run and leave no trace in what a load writes (CoreWorkload's init and doInsert).
OF_A_RUN = OF_A_COMMAND | words("""
    readproportion updateproportion insertproportion scanproportion readmodifywriteproportion deleteproportion
    requestdistribution readallfields writeallfields minscanlength maxscanlength scanlengthdistribution
    hotspotdatafraction hotspotopnfraction exponential.percentile exponential.frac zipfian.theta insertlag
    operationcount maxexecutiontime warmuptime threadcount target arrival rate.ramp rate.steps executors spin.sleep
    settle seed
    """)

WHOLE_NUMBERS = words("""
    recordcount insertcount insertstart fieldcount fieldlength minfieldlength zeropadding minscanlength maxscanlength
    core_workload_insertion_retry_limit insertlag executors
    """)
SHARES = words("""
    readproportion updateproportion insertproportion scanproportion readmodifywriteproportion deleteproportion
    hotspotdatafraction hotspotopnfraction exponential.frac
    """)
