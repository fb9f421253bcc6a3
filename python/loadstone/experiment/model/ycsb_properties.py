"""Facts about YCSB properties that the engine does not describe (loadstone.engine.describe)."""

from __future__ import annotations


def split_names(text: str) -> frozenset[str]:
    """Splits text into names."""
    return frozenset(text.split())


# Properties that a key of the experiment replaces.
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
# Properties that affect only one command: its output, its segment, its exit status.
OF_A_COMMAND = split_names("""
    status status.interval label exporter exportfile measurementtype measurement.interval measurement.histogram.verbose
    hdrhistogram.percentiles hdrhistogram.fileoutput hdrhistogram.output.path histogram.buckets timeseries.granularity
    measurement.raw.output_file measurement.raw.no_summary reportlatencyforeacherror latencytrackederrors segment
    failures.tolerated dotransactions measurement.trackjvm debug test ledger versions
    """)
# The properties of a changing rate. Like `rate`, they define due times.
CHANGING_RATES = frozenset({"rate.ramp", "rate.steps"})
# Properties that affect a run, but not the data of a load (CoreWorkload's init and doInsert).
OF_A_RUN = OF_A_COMMAND | split_names("""
    readproportion updateproportion insertproportion scanproportion readmodifywriteproportion deleteproportion
    requestdistribution readallfields writeallfields minscanlength maxscanlength scanlengthdistribution
    hotspotdatafraction hotspotopnfraction exponential.percentile exponential.frac zipfian.theta insertlag
    operationcount maxexecutiontime warmuptime threadcount target arrival rate.ramp rate.steps executors spin.sleep
    settle seed
    """)

WHOLE_NUMBERS = split_names("""
    recordcount insertcount insertstart fieldcount fieldlength minfieldlength zeropadding minscanlength maxscanlength
    core_workload_insertion_retry_limit insertlag executors
    """)
SHARES = split_names("""
    readproportion updateproportion insertproportion scanproportion readmodifywriteproportion deleteproportion
    hotspotdatafraction hotspotopnfraction exponential.frac
    """)
