//! From the settings of a command line to a `TrialSpec`.

use std::collections::BTreeMap;

use loadstone_load::Segment;
use loadstone_load::pace::{Arrival, PaceSpec, RatePiece};
use loadstone_measure::clock::unix_ns;
use loadstone_session::{Durability, Options};
use loadstone_stress::settings::{Command, Length, RateSettings, Settings};
use loadstone_stress::spec::{Command as Operation, StressSpec};
use loadstone_wire::error::EngineError;
use loadstone_wire::sink::Sink;
use loadstone_wire::spec::{
    DurabilitySpec, InsertSpec, Phase, StatementsSpec, StoreSpec, TrialSpec, Until, VERSION, WorkSpec,
};

/// The mean pause before a retry, s. The tool retries at once, and so floods a server that is overloaded (CASSANDRA-7821).
const RETRY_SECONDS: f64 = 0.05;
/// The clients of a warm-up, at most.
const WARMUP_THREADS: u32 = 100;

/// The clients of the first step.
pub fn first_threads(settings: &Settings) -> u32 {
    match settings.rate {
        RateSettings::Threads { threads, .. } => threads,
        RateSettings::Steps { min_threads, .. } => min_threads,
    }
}

/// The trial of a run with this number of clients.
pub fn translate(settings: &Settings, threads: u32) -> Result<TrialSpec, EngineError> {
    let mix = settings.operations().into_iter().filter_map(|(command, weight)| Some((operation(command)?, weight)));
    let until = match settings.command.length {
        Length::Count(count) => Until { operations: Some(count.max(0) as u64), seconds: None },
        Length::Duration { amount, unit } => {
            Until { operations: None, seconds: Some((amount * unit.seconds()) as f64) }
        }
        // The printer ends the run as soon as the rate is known well enough.
        Length::Uncertainty { max, .. } => {
            let seconds = f64::from(max) * f64::from(settings.log.interval_ms) / 1e3;
            Until { operations: None, seconds: Some(seconds) }
        }
    };
    let pace = match settings.rate {
        RateSettings::Threads { limit, .. } if limit.per_second() > 0 => {
            let rate = f64::from(limit.per_second());
            PaceSpec::Open { rate: vec![RatePiece { from: rate, to: rate, seconds: 0.0 }], arrival: Arrival::Uniform }
        }
        _ => PaceSpec::Closed,
    };
    trial(settings, mix.collect(), threads, pace, until)
}

/// The trial of the warm-up of an operation: without a rate, and errors do not end it. `None` without a warm-up.
pub fn translate_warmup(settings: &Settings, command: Command, threads: u32) -> Result<Option<TrialSpec>, EngineError> {
    let operations = settings.warmup_operations();
    let (Some(operation), true) = (operation(command), operations > 0) else { return Ok(None) };
    let until = Until { operations: Some(operations), seconds: None };
    let mix = [(operation, 1.0)].into();
    let mut spec = trial(settings, mix, threads.min(WARMUP_THREADS), PaceSpec::Closed, until)?;
    spec.inserts.keep_going = true;
    spec.sinks = Vec::new();
    Ok(Some(spec))
}

fn operation(command: Command) -> Option<Operation> {
    Some(match command {
        Command::Read => Operation::Read,
        Command::Write => Operation::Write,
        Command::CounterRead => Operation::CounterRead,
        Command::CounterWrite => Operation::CounterWrite,
        Command::Mixed => return None,
    })
}

fn trial(
    settings: &Settings,
    mix: BTreeMap<Operation, f64>,
    threads: u32,
    pace: PaceSpec,
    until: Until,
) -> Result<TrialSpec, EngineError> {
    let work = stress_spec(settings, mix)?;
    let pause = f64::from(settings.errors.min_delay_ms) / 1e3;
    let spec = TrialSpec {
        spec: VERSION,
        store: StoreSpec {
            name: "cassandra".to_owned(),
            properties: properties(settings)?,
            durability: DurabilitySpec::Os,
        },
        phase: Phase::Run,
        work: WorkSpec::Statements(StatementsSpec::Stress(work)),
        clients: u64::from(threads),
        pace,
        until,
        warmup_seconds: 0.0,
        segment: Segment::default(),
        seed: unix_ns(),
        inserts: InsertSpec {
            retries: u64::from(settings.errors.tries.saturating_sub(1)),
            retry_seconds: if pause > 0.0 { pause } else { RETRY_SECONDS },
            keep_going: settings.errors.ignore,
        },
        spin: false,
        executors: 0,
        deadline_ms: None,
        sinks: vec![Sink::HdrNs],
        interval_ms: u64::from(settings.log.interval_ms),
        lease_ms: None,
        wait_for_start: false,
        settle: false,
        run: None,
        ledger: None,
    };
    spec.check()?;
    Ok(spec)
}

/// The work of these operations.
pub fn stress_spec(settings: &Settings, mix: BTreeMap<Operation, f64>) -> Result<StressSpec, EngineError> {
    let timestamp = settings.columns.timestamp.as_ref().map(|text| {
        text.parse().map_err(|_| EngineError::usage(format!("-col timestamp={text} is not a number of microseconds")))
    });
    Ok(StressSpec {
        compat: settings.compat,
        keyspace: settings.schema.keyspace.clone(),
        // A run of this front end has defined them by then.
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
pub fn properties(settings: &Settings) -> Result<BTreeMap<String, String>, EngineError> {
    let mut properties = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(properties.insert(name.to_owned(), value));
    let (mut hosts, mut port) = (Vec::new(), None);
    for node in &settings.node.nodes {
        // An address with several colons is one of IPv6, without a port.
        let (host, own) = match node.rsplit_once(':') {
            Some((host, own)) if !host.contains(':') => (host, Some(own)),
            _ => (node.as_str(), None),
        };
        if own.is_some() && port.is_some() && own != port {
            return Err(EngineError::usage("-node: all contact points must have the same port")
                .hint("list hosts with one port; the other nodes are discovered"));
        }
        port = own.or(port);
        hosts.push(host);
    }
    set("hosts", hosts.join(","));
    set("port", port.map_or_else(|| settings.port.native.to_string(), str::to_owned));
    set("cassandra.keyspace", settings.schema.keyspace.to_lowercase());
    let level = match settings.command.consistency.as_str() {
        // In the tool these set the level of conditional updates alone, and the driver's default holds for all others.
        "SERIAL" | "LOCAL_SERIAL" => "LOCAL_ONE",
        level => level,
    };
    // ANY is a level of writes; a command that reads at it is refused, as a server would refuse each read.
    if settings.operations().iter().any(|(command, _)| matches!(command, Command::Read | Command::CounterRead)) {
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
    if let Some(datacenter) = &settings.node.datacenter {
        set("cassandra.localdc", datacenter.clone());
    }
    set("cassandra.readtimeoutmillis", settings.mode.request_timeout_ms.to_string());
    if let Some(truststore) = &settings.transport.truststore {
        set("cassandra.useSSL", "true".to_owned());
        set("cassandra.tls.ca", require_pem(truststore)?.to_owned());
        // The tool's driver does not compare names.
        let verify = if settings.transport.hostname_verification { "full" } else { "ca" };
        set("cassandra.tls.verify", verify.to_owned());
        if let Some(keystore) = settings.transport.keystore.as_ref().filter(|keystore| *keystore != truststore) {
            set("cassandra.tls.certificate", require_pem(keystore)?.to_owned());
            set("cassandra.tls.key", keystore.clone());
        }
    }
    Ok(properties)
}

/// A file in PEM; the stores of Java are refused with the commands that convert them.
fn require_pem(path: &str) -> Result<&str, EngineError> {
    // JKS begins with its magic number, PKCS#12 with a sequence in DER (RFC 7292).
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

/// The options of a connection outside a trial.
pub fn options(settings: &Settings) -> Result<Options, EngineError> {
    Ok(Options {
        properties: properties(settings)?,
        durability: Durability::Os,
        table: String::new(),
        create: false,
        clients: 1,
    })
}
