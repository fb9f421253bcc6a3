//! `hbase`: HBase through its own Java client, in the JVM host, with YCSB's layout and options.

use std::fs;
use std::path::{Path, PathBuf};

use crate::about::{About, setting};
use crate::cache;
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::jvm::session::JvmSession;
use crate::jvm::{Hosted, class_path, host_error};
use crate::options::{Durability, Options};
use crate::session::{Collections, Drive, Store};

/// HBase's names for levels of durability.
const LEVELS: &[&str] = &["USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"];
/// Java 17 encapsulates packages that the client's Netty accesses.
const OPENED: &str = "--add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/jdk.internal.misc=ALL-UNNAMED \
                      --add-modules=jdk.unsupported";
const LIBRARY_HINT: &str = "fetch them with `loadstone systems hbase class-path`, or set -p hbase.lib='DIRECTORY/*'";

/// An HBase cluster.
#[derive(Debug)]
pub struct HBase {
    hosted: Hosted,
    guarantee: Guarantee,
}

impl Store for HBase {
    type Session = JvmSession;
    const ABOUT: About = About {
        name: "hbase",
        line: "HBase, through its own Java client (columnfamily, -cp CONF)",
        networked: true,
        properties: &[
            setting("columnfamily"),
            setting("durability"),
            setting("clientbuffering"),
            setting("writebuffersize"),
            setting("hbase.usepagefilter"),
            setting("principal"),
            setting("keytab"),
            setting("hbase.conf"),
            setting("hbase.lib"),
            setting("hbase.*"),
            setting("zookeeper.*"),
            setting("jvm.classpath"),
            setting("jvm.args"),
            setting("jvm.host"),
        ],
    };
    // HBase's client blocks.
    const DRIVE: Drive = Drive::Thread;
    // The stack is as large as the stacks of a JVM's own threads.
    const STACK_BYTES: usize = 1 << 20;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let family = options.get("columnfamily").ok_or_else(|| {
            EngineError::usage("columnfamily is not set").hint("name the table's column family: -p columnfamily=cf")
        })?;
        if options.get("principal").or(options.get("keytab")).is_some() {
            return Err(EngineError::usage("Kerberos is not supported yet (principal, keytab)")
                .hint("omit both properties on a cluster without Kerberos"));
        }
        if let Some(text) = options.get("writebuffersize") {
            text.parse::<u32>().map_err(|_| {
                EngineError::usage(format!("writebuffersize must be a number of bytes, got \"{text}\""))
                    .hint("12582912 is YCSB's default")
            })?;
        }
        let level = level(options)?;
        let buffered = options.get("clientbuffering").is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let mut class_path = Vec::new();
        for name in ["hbase.conf", "jvm.classpath"] {
            let entries = class_path::entries(options.get(name).unwrap_or_default(), name)?;
            class_path.extend(entries);
        }
        class_path.extend(library(options, &class_path)?);
        let mut options = options.clone();
        let arguments = options.get("jvm.args").map_or_else(|| OPENED.to_owned(), |own| format!("{OPENED} {own}"));
        options.properties.insert("jvm.args".to_owned(), arguments);
        options.properties.insert("columnfamily".to_owned(), family.to_owned());
        let hosted = Hosted::open(&options, "hbase", class_path, &[("durability", level)])?
            .map_err(|message| refusal(&message))?;
        let facts = hosted.facts()?;
        let mut guarantee = level_guarantee(level, &facts, buffered);
        guarantee.facts = facts;
        Ok(Self { hosted, guarantee })
    }

    fn guarantee(&self) -> Guarantee {
        self.guarantee.clone()
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        let hint = "check that HBase is running and serves the table";
        JvmSession::new(self.hosted.machine, self.hosted.store, "a client of HBase", hint)
    }

    fn close(self) -> Result<(), EngineError> {
        self.hosted.close()
    }

    fn collections(&self) -> Vec<Collections> {
        self.hosted.collections()
    }

    fn describe_loss(&self) -> Option<String> {
        self.hosted.describe_loss()
    }
}

/// The HBase durability of writes: the value of the property `durability` if it is HBase's name for a level, otherwise
/// the level that is equivalent to Loadstone's.
fn level(options: &Options) -> Result<&'static str, EngineError> {
    let own = options.get("durability");
    match own {
        None => Ok(match options.durability {
            Durability::None => "SKIP_WAL",
            // If the level is not set, the table determines it, as in YCSB.
            Durability::Os => "USE_DEFAULT",
            Durability::Device => "FSYNC_WAL",
        }),
        Some("none") => Ok("SKIP_WAL"),
        Some("os") => Ok("SYNC_WAL"),
        Some("device") => Ok("FSYNC_WAL"),
        Some(text) => LEVELS.iter().copied().find(|level| *level == text).ok_or_else(|| {
            EngineError::usage(format!("durability must be none, os, device or a level of HBase, got \"{text}\""))
                .hint(format!("HBase's levels are {}", LEVELS.join(", ")))
        }),
    }
}

/// The guarantee of a durability level. If writes do not set a level (`USE_DEFAULT`), the table's level applies.
fn level_guarantee(level: &str, facts: &[(String, String)], buffered: bool) -> Guarantee {
    let table = facts.iter().find(|(name, _)| name == "table.durability").map_or("", |(_, value)| value.as_str());
    let effective = if level == "USE_DEFAULT" { table } else { level };
    let mut guarantee = match effective {
        "SKIP_WAL" => Guarantee::new(Durability::None, "no write-ahead log"),
        "ASYNC_WAL" => Guarantee::periodic("write-ahead log, written in the background"),
        "FSYNC_WAL" => Guarantee::new(Durability::Device, "write-ahead log, hsync before the answer"),
        _ => Guarantee::new(Durability::Os, "write-ahead log, hflush before the answer"),
    };
    if buffered {
        let how = format!("kept in the client until its buffer is full, then {}", guarantee.how);
        return Guarantee::new(Durability::None, how);
    }
    guarantee.how = format!("{} ({level})", guarantee.how);
    guarantee
}

/// The client's jars: named by an option or a variable, on the class path, or in the cache.
fn library(options: &Options, class_path: &[PathBuf]) -> Result<Vec<PathBuf>, EngineError> {
    if let Some(text) = options.get("hbase.lib") {
        // A directory here means the jars in it, not classes.
        let text = if Path::new(text).is_dir() { format!("{}/*", text.trim_end_matches('/')) } else { text.to_owned() };
        return class_path::entries(&text, "hbase.lib");
    }
    if let Some(text) = cache::from_environment(cache::LOADSTONE_HBASE) {
        return class_path::entries(&text.to_string_lossy(), cache::LOADSTONE_HBASE);
    }
    let is_client = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ["hbase-client-", "hbase-shaded-client-"].iter().any(|start| name.starts_with(start))
    };
    if class_path.iter().any(is_client) {
        return Ok(Vec::new());
    }
    // The lab stores each distinct list of jars in a separate directory.
    let mut directories: Vec<PathBuf> = fs::read_dir(cache::directory().join("maven"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("hbase-client-"))
        .map(|entry| entry.path().join("lib"))
        .filter(|path| path.is_dir())
        .collect();
    directories.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    match directories.last() {
        Some(newest) => class_path::entries(&format!("{}/*", newest.display()), "the cache"),
        None => Err(EngineError::failed(format!("no jars of HBase's client in {}", cache::directory().display()))
            .hint(LIBRARY_HINT)),
    }
}

/// Converts the host's failure message to an error. The second line of a two-line message is the hint.
fn refusal(message: &str) -> EngineError {
    if message.contains("NoClassDefFoundError") || message.contains("ClassNotFoundException") {
        return EngineError::failed(format!("the jars of HBase's client are incomplete: {message}")).hint(LIBRARY_HINT);
    }
    if message.contains('\n') {
        return host_error(message);
    }
    EngineError::failed(format!("HBase cannot be used: {message}")).hint("check its properties")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(durability: Durability, text: Option<&str>) -> Options {
        let properties = text.map(|text| ("durability".to_owned(), text.to_owned())).into_iter().collect();
        Options { properties, durability, ..Options::default() }
    }

    #[test]
    fn durability_is_hbases_level_or_ours() {
        assert_eq!(level(&options(Durability::Os, None)), Ok("USE_DEFAULT"));
        assert_eq!(level(&options(Durability::Device, None)), Ok("FSYNC_WAL"));
        assert_eq!(level(&options(Durability::Os, Some("os"))), Ok("SYNC_WAL"));
        assert_eq!(level(&options(Durability::Os, Some("ASYNC_WAL"))), Ok("ASYNC_WAL"));
        assert!(level(&options(Durability::Os, Some("sync"))).unwrap_err().is_usage());
    }

    #[test]
    fn guarantee_never_exceeds_the_table() {
        let table = |level: &str| [("table.durability".to_owned(), level.to_owned())];
        assert_eq!(level_guarantee("USE_DEFAULT", &table("ASYNC_WAL"), false).survives(), "interval");
        assert_eq!(level_guarantee("USE_DEFAULT", &table("USE_DEFAULT"), false).survives(), "os");
        assert_eq!(level_guarantee("FSYNC_WAL", &table("SKIP_WAL"), false).survives(), "device");
        assert_eq!(level_guarantee("FSYNC_WAL", &table("SKIP_WAL"), true).survives(), "none");
    }
}
