//! Translates the settings of a command line into a `TrialSpec`.

use std::collections::BTreeMap;

use loadstone_kinds::columns::count_operations;
use loadstone_load::pace::{Arrival, PaceSpec, RatePiece};
use loadstone_measure::clock::unix_ns;
use loadstone_session::{Options, Store};
use loadstone_stores::cassandra::Cassandra;
use loadstone_stress::columns::{ColumnsSpec, OperationSpec};
use loadstone_stress::population::Selection;
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::{ModeSettings, RateSettings, RunLength, Settings, StressCommand};
use loadstone_stress::spec::{Command as Operation, StressSpec};
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::{DelaySpec, Durability, InsertSpec, StatementsSpec, StoreSpec, TrialSpec, Until, WorkSpec};

use super::user::columns_spec;

/// The maximum number of clients in a warm-up.
const WARMUP_THREADS: u32 = 100;

/// The number of clients in the first step.
pub fn first_threads(settings: &Settings) -> u32 {
    match settings.rate {
        RateSettings::Threads { threads, .. } => threads,
        RateSettings::Steps { min_threads, .. } => min_threads,
    }
}

/// Refuses a run that cannot be performed.
pub fn check_run(settings: &Settings, profiles: &[Profile]) -> Result<(), EngineError> {
    let mut settings = settings.clone();
    if settings.command.length == RunLength::Count(0) {
        // The tables are created, and nothing is run.
        settings.command.length = RunLength::Count(1);
    }
    translate_settings(&settings, profiles, first_threads(&settings)).map(drop)
}

/// The trial for a run with the given number of clients.
pub fn translate_settings(settings: &Settings, profiles: &[Profile], threads: u32) -> Result<TrialSpec, EngineError> {
    let seed = unix_ns();
    let mut work = if let Some(user) = &settings.command.user {
        StatementsSpec::Columns(columns_spec(settings, profiles, user)?)
    } else {
        let mix = settings.operations().into_iter().filter_map(|(command, weight)| Some((operation(command)?, weight)));
        StatementsSpec::Stress(stress_spec(settings, mix.collect())?)
    };
    // The tool counts partitions, and its limit applies to the rate of partitions.
    let partitions = match &work {
        StatementsSpec::Columns(columns) => columns.partitions_per_operation(),
        StatementsSpec::Stress(_) => 1.0,
    };
    let until = match settings.command.length {
        RunLength::Count(count) => count_until(count.max(0) as u64, &mut work, seed)?,
        RunLength::Duration { amount, unit } => {
            Until { operations: None, seconds: Some(amount as f64 * unit.seconds() as f64) }
        }
        // The printer ends the run as soon as the rate is known with sufficient precision.
        RunLength::Uncertainty { max, .. } => {
            let seconds = f64::from(max) * settings.interval_ms() as f64 / 1e3;
            Until { operations: None, seconds: Some(seconds) }
        }
    };
    let pace = match settings.rate {
        RateSettings::Threads { limit, .. } if limit.per_second() > 0 => {
            let rate = f64::from(limit.per_second()) / partitions;
            PaceSpec::Open { rate: vec![RatePiece { from: rate, to: rate, seconds: 0.0 }], arrival: Arrival::Uniform }
        }
        _ => PaceSpec::Closed,
    };
    build_trial(settings, profiles, work, seed, (threads, pace, until))
}

/// Returns the limit for a run over `count` partitions. If a profile's sequence contains exactly this number of visits,
/// the sequence does not start again.
fn count_until(count: u64, work: &mut StatementsSpec, seed: u64) -> Result<Until, EngineError> {
    let operations = match work {
        StatementsSpec::Columns(columns) => {
            let length = columns.population(seed).ok().and_then(|population| population.length());
            if let Selection::Sequence { wrap, .. } = &mut columns.population
                && length.and_then(|length| length.checked_mul(u64::from(columns.visits))) == Some(count)
            {
                *wrap = false;
            }
            count_operations(columns, count, seed)?
        }
        StatementsSpec::Stress(_) => count,
    };
    Ok(Until { operations: Some(operations), seconds: None })
}

/// The trials of the warm-up, one per operation, with their names. They have no rate limit, and failed operations do
/// not end them.
pub fn translate_warmups(settings: &Settings, profiles: &[Profile]) -> Result<Vec<(String, TrialSpec)>, EngineError> {
    let operations = settings.warmup_operations();
    if operations == 0 {
        return Ok(Vec::new());
    }
    let works: Vec<(String, StatementsSpec)> = if let Some(user) = &settings.command.user {
        let all = columns_spec(settings, profiles, user)?;
        let alone = |operation: &OperationSpec| {
            let columns = ColumnsSpec { operations: vec![operation.clone()], ..all.clone() };
            (format!("[{}]", operation.name), StatementsSpec::Columns(columns))
        };
        all.operations.iter().filter(|operation| operation.weight > 0.0).map(alone).collect()
    } else {
        let mut works = Vec::new();
        for (command, _) in settings.operations() {
            let Some(kind) = operation(command) else { continue };
            let work = stress_spec(settings, [(kind, 1.0)].into())?;
            works.push((command.label(), StatementsSpec::Stress(work)));
        }
        works
    };
    let mut specs = Vec::new();
    for (name, mut work) in works {
        let seed = unix_ns();
        let until = count_until(operations, &mut work, seed)?;
        let threads = first_threads(settings).min(WARMUP_THREADS);
        let mut spec = build_trial(settings, profiles, work, seed, (threads, PaceSpec::Closed, until))?;
        spec.inserts.keep_going = true;
        spec.sinks = Vec::new();
        specs.push((name, spec));
    }
    Ok(specs)
}

fn operation(command: StressCommand) -> Option<Operation> {
    Some(match command {
        StressCommand::Read => Operation::Read,
        StressCommand::Write => Operation::Write,
        StressCommand::CounterRead => Operation::CounterRead,
        StressCommand::CounterWrite => Operation::CounterWrite,
        StressCommand::Mixed | StressCommand::User => return None,
    })
}

fn build_trial(
    settings: &Settings,
    profiles: &[Profile],
    work: StatementsSpec,
    seed: u64,
    (threads, pace, until): (u32, PaceSpec, Until),
) -> Result<TrialSpec, EngineError> {
    let mut properties = properties(settings, profiles)?;
    let ModeSettings { connections_per_host, connections_per_shard, .. } = settings.mode;
    let mut executors = 0;
    if let Some(connections) = connections_per_host.or(connections_per_shard) {
        executors = count_executors(connections, threads);
        let own = (connections / executors).to_string();
        if connections_per_host.is_some() {
            properties.insert("cassandra.maxconnections".to_owned(), own.clone());
        }
        properties.insert("cassandra.coreconnections".to_owned(), own);
    }
    let store = StoreSpec { name: "cassandra".to_owned(), properties, durability: Durability::Os };
    let spec = TrialSpec {
        clients: u64::from(threads),
        pace,
        until,
        inserts: InsertSpec {
            retries: u64::from(settings.errors.tries.saturating_sub(1)),
            retry_seconds: f64::from(settings.errors.pause_ms()) / 1e3,
            keep_going: settings.errors.ignore,
            delays: settings.errors.has_delays().then(|| DelaySpec {
                policy: settings.errors.delay_policy,
                seconds_max: f64::from(settings.errors.max_delay_ms) / 1e3,
            }),
        },
        interval_ms: settings.interval_ms(),
        executors: u64::from(executors),
        ..TrialSpec::new(store, WorkSpec::Statements(work), seed)
    };
    spec.validate().map_err(|refusal| refusal.rename_fields(name_option))?;
    Ok(spec)
}

/// The option that sets a field of the spec.
fn name_option(field: &str) -> String {
    let option = match field {
        "clients" => "-rate threads=",
        "until.operations" => "n=",
        "until.seconds" => "the length of the run in seconds",
        "interval_ms" => "-log interval=",
        "pace.rate" => "-rate throttle= or fixed=",
        "work.key_bytes" => "keysize=",
        "work.columns" => "-col names=",
        "work.size" => "-col size=",
        "work.mix" => "ratio()",
        "work.add" => "add=",
        "work.population" => "-pop",
        "work.row_population_ratio" => "-insert row-population-ratio=",
        field => field,
    };
    option.to_owned()
}

/// The largest number of executors, up to the usual number, that can share the connections equally.
fn count_executors(connections: u32, threads: u32) -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let usual = processors.min(threads.div_ceil(Cassandra::CLIENTS_PER_EXECUTOR as u32));
    (1..=usual).rev().find(|executors| connections.is_multiple_of(*executors)).unwrap_or(1)
}

/// The workload with the given operations.
pub fn stress_spec(settings: &Settings, mix: BTreeMap<Operation, f64>) -> Result<StressSpec, EngineError> {
    let timestamp = settings.columns.timestamp.as_ref().map(|text| {
        text.parse().map_err(|_| {
            EngineError::usage(format!("-col timestamp={text} is not a number of microseconds"))
                .hint(format!("use a number from 0 to {}", i64::MAX))
        })
    });
    Ok(StressSpec {
        compat: settings.compat,
        keyspace: settings.schema.keyspace.clone(),
        // The front end creates the tables before the trial.
        definitions: Vec::new(),
        mix,
        population: settings.population.selection.clone(),
        share: settings.population.share,
        revisit: settings.insert.revisit.clone(),
        key_bytes: u64::from(settings.command.key_bytes),
        columns: settings.columns.names.clone(),
        size: settings.columns.size.clone(),
        row_population_ratio: settings.insert.row_population_ratio.clone(),
        add: settings.command.add.spec.clone(),
        selects_all: settings.columns.slice,
        validates: !settings.errors.skip_read_validation,
        timestamp_us: timestamp.transpose()?,
        unprepared: !settings.mode.prepared,
    })
}

/// The properties of the store.
pub fn properties(settings: &Settings, profiles: &[Profile]) -> Result<BTreeMap<String, String>, EngineError> {
    let mut properties = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(properties.insert(name.to_owned(), value));
    let (mut hosts, mut port) = (Vec::new(), None);
    for node in &settings.node.nodes {
        // An IPv6 address has several colons, and needs brackets before a port.
        let (host, own) = match node.rsplit_once(':') {
            Some((host, own)) if host.ends_with(']') || !host.contains(':') => (host, Some(own)),
            _ => (node.as_str(), None),
        };
        if own.is_some() && port.is_some() && own != port {
            return Err(EngineError::usage("-node: all contact points must have the same port")
                .hint("list hosts with one port; the other nodes are discovered"));
        }
        port = own.or(port);
        hosts.push(host.trim_start_matches('[').trim_end_matches(']'));
    }
    set("hosts", hosts.join(","));
    set("port", port.map_or_else(|| settings.port.native.to_string(), str::to_owned));
    let keyspace = profiles.first().map_or(&settings.schema.keyspace, |profile| &profile.table.keyspace);
    set("cassandra.keyspace", keyspace.to_lowercase());
    let level = settings.level();
    // ANY is a consistency level for writes only. A command that reads at ANY is refused, because a server would refuse
    // every read.
    let reads = settings
        .operations()
        .iter()
        .any(|(command, _)| matches!(command, StressCommand::Read | StressCommand::CounterRead));
    if reads || settings.command.user.as_ref().is_some_and(|user| !user.is_load()) {
        set("cassandra.readconsistencylevel", level.to_owned());
    }
    set("cassandra.writeconsistencylevel", level.to_owned());
    if let Some(user) = &settings.mode.user {
        set("cassandra.username", user.clone());
        set("cassandra.password", settings.mode.password.clone().unwrap_or_default());
    }
    if let Some(version) = settings.mode.protocol_version {
        set("cassandra.protocol", version.to_string());
    }
    if settings.mode.compression != "none" {
        set("cassandra.compression", settings.mode.compression.clone());
    }
    if let Some(datacenter) = &settings.node.datacenter {
        set("cassandra.localdc", datacenter.clone());
    }
    if let Some(timeout_ms) = settings.mode.request_timeout_ms {
        set("cassandra.readtimeoutmillis", timeout_ms.to_string());
    }
    if settings.node.whitelist {
        set("cassandra.whitelist", "true".to_owned());
    }
    if let Some(truststore) = &settings.transport.truststore {
        set("cassandra.useSSL", "true".to_owned());
        set("cassandra.tls.ca", require_pem(truststore)?.to_owned());
        // The tool's driver does not verify host names.
        let verify = if settings.transport.hostname_verification { "full" } else { "ca" };
        set("cassandra.tls.verify", verify.to_owned());
        if let Some(keystore) = settings.transport.keystore.as_ref().filter(|keystore| *keystore != truststore) {
            set("cassandra.tls.certificate", require_pem(keystore)?.to_owned());
            set("cassandra.tls.key", keystore.clone());
        }
    }
    Ok(properties)
}

/// Requires a PEM file. Java key stores are refused with a hint that contains the commands for converting them.
fn require_pem(path: &str) -> Result<&str, EngineError> {
    // A JKS file begins with its magic number, and a PKCS#12 file begins with a DER sequence (RFC 7292).
    const JKS: [u8; 4] = [0xFE, 0xED, 0xFE, 0xED];
    const DER_SEQUENCE: u8 = 0x30;
    let bytes = std::fs::read(path).map_err(|error| {
        EngineError::usage(format!("cannot read {path}: {error}")).hint("-transport requires PEM files")
    })?;
    if bytes.starts_with(&JKS) || bytes.first() == Some(&DER_SEQUENCE) {
        return Err(EngineError::usage(format!("{path} is a Java keystore (JKS or PKCS#12), not PEM")).hint(
            "convert a truststore with `keytool -exportcert -rfc -keystore FILE -alias ALIAS`, and a keystore with `openssl \
             pkcs12 -in FILE -nodes` (a JKS file first with `keytool -importkeystore -deststoretype PKCS12`)",
        ));
    }
    Ok(path)
}

/// The options for a connection outside a trial.
pub fn options(settings: &Settings, profiles: &[Profile]) -> Result<Options, EngineError> {
    Ok(Options {
        properties: properties(settings, profiles)?,
        durability: Durability::Os,
        clients: 1,
        ..Options::default()
    })
}
