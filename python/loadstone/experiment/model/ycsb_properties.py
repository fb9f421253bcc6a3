"""What the lab knows of properties, beside what the engine describes (loadstone.describe)."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


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
