//! Translates TestDFSIO's arguments into a TrialSpec.

use std::collections::BTreeMap;

use loadstone_storage::file_operations::{Access, Action, FilesSpec, FilesWork, Sync};
use loadstone_storage::fs::{ALIGNMENT, Location, Scheme};

use super::args::{Args, Io, Test, parse_size, parse_whole};
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::{Durability, StoreSpec, TrialSpec, Until, WorkSpec};

/// Hadoop's default directory (`TestDFSIO.getBaseDir`).
const BASE: &str = "/benchmarks/TestDFSIO";
/// Maximum number of files that are processed at the same time by default.
const CLIENTS_MAX: u64 = 16;
/// Number of buffers in flight per file.
const DEPTH: u64 = 8;

/// Hadoop settings that Loadstone interprets and also passes to HDFS.
const INTERPRETED: &[&str] = &["dfs.replication", "dfs.blocksize", "test.build.data", "fs.defaultFS", CLIENTS];
const CLIENTS: &str = "mapreduce.local.map.tasks.maximum";

/// The base directory. As in Hadoop, the files are in its subdirectory `io_data`.
pub fn location(args: &Args) -> Result<Location, EngineError> {
    let setting = |name: &str| args.settings.get(name).map(String::as_str);
    let Some(text) = args.uri.as_deref().or(setting("fs.defaultFS")) else {
        return Err(
            EngineError::usage("no file system is given").hint("add file:///DIRECTORY or hdfs://HOST:PORT/DIRECTORY")
        );
    };
    let mut location = Location::parse(text)?;
    if let Some(base) = setting("test.build.data") {
        location.path = Location::parse(base)?.path;
    } else if location.path == "/" {
        BASE.clone_into(&mut location.path);
    }
    Ok(location)
}

/// The spec, and warnings for the user.
pub fn translate_args(args: &Args, action: Action, access: Access) -> Result<(TrialSpec, Vec<String>), EngineError> {
    let location = location(args)?;
    let local = location.scheme == Scheme::File;
    let setting = |name: &str| args.settings.get(name).map(String::as_str);
    refuse_location(args, &location)?;
    let clients = match (args.clients, setting(CLIENTS)) {
        (Some(clients), _) => clients,
        (None, Some(text)) => parse_whole(CLIENTS, text)?,
        (None, None) => args.files.clamp(1, CLIENTS_MAX),
    };
    let writes = matches!(action, Action::Write | Action::Append);
    let work = FilesSpec {
        directory: "io_data".to_owned(),
        prefix: "test_io_".to_owned(),
        files: args.files,
        file_bytes: args.file_bytes,
        buffer_bytes: args.buffer_bytes,
        action,
        access,
        skip_bytes: if access == Access::Skip { args.skip_bytes.unwrap_or(args.buffer_bytes) } else { 0 },
        align_bytes: if args.direct || writes { args.buffer_bytes } else { 1 },
        sync: args.sync,
        verify: args.verify,
        compression: args.compression,
        compressible: args.compressible,
        replication: setting("dfs.replication").map(parse_replication).transpose()?,
        block_bytes: setting("dfs.blocksize").map(block_bytes).transpose()?,
    };
    let seed = args.seed.unwrap_or_else(loadstone_measure::clock::unix_ns);
    let files = FilesWork::new(work.clone(), seed).map_err(|(what, hint)| EngineError::usage(what).hint(hint))?;
    let mut properties = BTreeMap::new();
    let mut warnings = Vec::new();
    let synced = matches!(args.sync, Sync::Close | Sync::Buffer);
    if !local && synced && action == Action::Append {
        warnings.push("on HDFS, a sync of an append reaches only the block that is being written".to_owned());
    }
    properties.insert(if local { "file.dir" } else { "hdfs.dir" }.to_owned(), location.uri());
    if args.direct {
        properties.insert("file.direct".to_owned(), "true".to_owned());
    }
    if args.cold {
        properties.insert("file.cold".to_owned(), "true".to_owned());
    }
    if args.io == Io::Uring {
        properties.insert("file.io".to_owned(), "uring".to_owned());
        properties.insert("file.depth".to_owned(), args.depth.unwrap_or(DEPTH).to_string());
    }
    for (name, value) in &args.settings {
        let hdfs = ["dfs.", "fs.", "ipc."].iter().any(|start| name.starts_with(start));
        if !local && hdfs && name != "fs.defaultFS" {
            properties.insert(name.clone(), value.clone());
        } else if !INTERPRETED.contains(&name.as_str()) {
            warnings.push(format!("{name} has no effect here"));
        }
    }
    let store = StoreSpec {
        name: if local { "file" } else { "hdfs" }.to_owned(),
        properties,
        durability: if synced { Durability::Device } else { Durability::Os },
    };
    let spec = TrialSpec {
        clients: clients.min(args.files).max(1),
        until: Until { operations: Some(files.parts() * args.files), seconds: None },
        executors: args.executors.unwrap_or(0),
        ..TrialSpec::new(store, WorkSpec::Files(work), seed)
    };
    spec.check()?;
    Ok((spec, warnings))
}

/// Refuses options that the file system does not support, before any file is changed.
fn refuse_location(args: &Args, location: &Location) -> Result<(), EngineError> {
    let hdfs = location.scheme == Scheme::Hdfs;
    let writes = matches!(args.test, Test::Work(Action::Write | Action::Append, _));
    let hint = |message: &str, hint: &str| Err(EngineError::usage(message).hint(hint));
    if hdfs && args.direct {
        return hint("--direct is for local files", "leave it out: the data nodes decide how they access their disks");
    }
    if hdfs && args.cold {
        return hint(
            "--cold is for local files",
            "drop the page caches of the hosts of the data nodes, or restart them",
        );
    }
    if hdfs && args.io == Io::Uring {
        return hint("--io uring is for local files", "leave it out");
    }
    if hdfs && args.sync == Sync::Flush && matches!(args.test, Test::Work(Action::Append, _)) {
        return hint("an append to HDFS has no hflush", "use --sync close (hsync), which guarantees more");
    }
    if hdfs && matches!(args.test, Test::Work(Action::Truncate, _)) {
        return hint(
            "the native HDFS client has no truncate",
            "use `hdfs dfs -truncate`, or Hadoop's TestDFSIO -truncate",
        );
    }
    if hdfs && matches!(args.test, Test::Work(Action::Write, Access::Random)) {
        return hint("HDFS supports only sequential writes", "leave -random out");
    }
    if args.direct && !args.buffer_bytes.is_multiple_of(ALIGNMENT as u64) {
        let message =
            format!("--direct needs a -bufferSize that is a multiple of {ALIGNMENT}, got {}", args.buffer_bytes);
        return Err(EngineError::usage(message).hint("add -bufferSize 1048576"));
    }
    if args.direct && args.skip_bytes.is_some_and(|bytes| !bytes.is_multiple_of(ALIGNMENT as u64)) {
        let message = format!("--direct needs a -skipSize that is a multiple of {ALIGNMENT}");
        return Err(EngineError::usage(message).hint("add -skipSize 1048576B"));
    }
    if args.direct && args.compression.is_some() {
        return hint("--direct cannot be combined with -compression", "leave one of them out");
    }
    if args.compressible && !writes {
        return hint("--compressible is for -write and -append", "leave it out: -read recognises such content");
    }
    if args.cold && writes {
        return hint("--cold is for -read", "leave it out: a write does not read from the page cache");
    }
    if !writes && args.sync != Sync::None {
        return hint("--sync is for -write and -append", "leave it out");
    }
    if !hdfs && args.executors.is_some() {
        return hint("--executors is for hdfs://", "leave it out: each client of local files has a thread");
    }
    if !hdfs && args.settings.get("dfs.replication").is_some_and(|text| text != "1") {
        return hint("local files are not replicated (dfs.replication)", "leave it out, or use hdfs://");
    }
    Ok(())
}

fn parse_replication(text: &str) -> Result<u32, EngineError> {
    match text.parse() {
        Ok(copies @ 1..=512) => Ok(copies),
        _ => Err(EngineError::usage(format!("dfs.replication must be 1 to 512, got \"{text}\""))
            .hint("use -D dfs.replication=3")),
    }
}

/// Parses a block size as Hadoop does: `134217728` or `128m` (`Configuration.getLongBytes`).
fn block_bytes(text: &str) -> Result<u64, EngineError> {
    let bytes = if text.ends_with(|c: char| c.is_ascii_digit()) {
        parse_whole("dfs.blocksize", text)?
    } else {
        parse_size("dfs.blocksize", &format!("{}B", text.trim_end_matches(['b', 'B'])))?
    };
    // Each of HDFS's checksums covers 512 bytes.
    if bytes == 0 || !bytes.is_multiple_of(512) {
        return Err(EngineError::usage(format!("dfs.blocksize must be a multiple of 512, got \"{text}\""))
            .hint("use -D dfs.blocksize=128m"));
    }
    Ok(bytes)
}
