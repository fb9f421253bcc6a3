//! `jvm`: any YCSB binding (`site.ycsb.DB`), in a JVM within this process.
//!
//! The JVM is loaded at run time through JNI's invocation interface. Each operation is a single static call of a small
//! host in Java (`java/`), which calls the binding as YCSB would.

mod arguments;
pub mod class_path;
mod env;
mod exit;
mod home;
mod host;
mod host_jar;
pub mod machine;
pub mod session;

use std::path::PathBuf;

use jni_sys::jobject;

use crate::about::{About, setting};
use crate::cache;
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::session::{Collections, Drive, Store};
use machine::Machine;
use session::JvmSession;

/// The jar with `site.ycsb.DB` in the local Maven repository. It is appended to the user's class path for bindings that
/// are packaged without it.
const YCSB_CORE: &str = "site/ycsb/core/0.17.0/core-0.17.0.jar";

/// A store within the JVM: the part that all such stores have in common.
#[derive(Debug)]
pub struct Hosted {
    /// The JVM.
    pub machine: &'static Machine,
    /// The store object of the host.
    pub store: jobject,
    /// Whether operations cross a network.
    pub networked: bool,
}

// SAFETY: any attached thread may use a global reference, and the host's stores are thread safe.
unsafe impl Send for Hosted {}
// SAFETY: as above.
unsafe impl Sync for Hosted {}

impl Hosted {
    /// Starts the JVM with this class path, followed by the host's jar, and opens a store in it; `Err` contains Java's
    /// message.
    pub fn open(
        options: &Options,
        kind: &str,
        mut class_path: Vec<PathBuf>,
        properties: &[(&str, &str)],
    ) -> Result<Result<Self, String>, EngineError> {
        class_path.push(host_jar::path(options)?);
        let core = cache::maven_repository().join(YCSB_CORE);
        if core.is_file() {
            class_path.push(core);
        }
        let arguments = arguments::split(options.get("jvm.args").unwrap_or_default())?;
        let machine = machine::machine(&class_path::join_entries(&class_path), &arguments)?;
        let mut request = Vec::new();
        let own = options.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = own.chain(properties.iter().copied()).flat_map(|(name, value)| [name, value]);
        for text in [kind, &options.table].into_iter().chain(pairs) {
            request.extend_from_slice(&(text.len() as u32).to_be_bytes());
            request.extend_from_slice(text.as_bytes());
        }
        let networked = options.get("jvm.networked").is_none_or(|text| !text.eq_ignore_ascii_case("false"));
        let opened = machine.host.open(machine.env()?, &request);
        Ok(opened.map(|store| Self { machine, store, networked }))
    }

    /// The store's facts.
    pub fn facts(&self) -> Result<Vec<(String, String)>, EngineError> {
        let facts = self.machine.host.facts(self.machine.env()?, self.store);
        facts.map_err(|text| host_error(&text))
    }

    /// The activity of the JVM's collectors so far.
    pub fn collections(&self) -> Vec<Collections> {
        if exit::has_ended() {
            return Vec::new();
        }
        self.machine.env().map(|env| self.machine.host.collectors(env)).unwrap_or_default()
    }

    /// The reason why the JVM has ended; `None` if it has not.
    pub fn describe_loss(&self) -> Option<String> {
        exit::end_reason()
    }

    /// Closes the store.
    pub fn close(self) -> Result<(), EngineError> {
        if exit::has_ended() {
            return Ok(());
        }
        let closed = self.machine.host.close(self.machine.env()?, self.store);
        closed.map_err(|text| host_error(&format!("cannot close the store: {text}")))
    }
}

/// Converts the host's failure message to an error. The second line, if any, is the hint.
pub fn host_error(text: &str) -> EngineError {
    match text.split_once('\n') {
        Some((message, hint)) => EngineError::failed(message).hint(hint),
        None => EngineError::failed(text),
    }
}

/// A system that is accessed through a YCSB binding.
#[derive(Debug)]
pub struct Jvm {
    hosted: Hosted,
    class: String,
}

impl Store for Jvm {
    type Session = JvmSession;
    const ABOUT: About = About {
        name: "jvm",
        line: "any binding of YCSB, in a JVM within the load generator (-db CLASS -cp PATH)",
        networked: true,
        properties: &[
            setting("jvm.class"),
            setting("jvm.classpath"),
            setting("jvm.args"),
            setting("jvm.networked"),
            setting("jvm.host"),
            setting("*"),
        ],
    };
    // Bindings block.
    const DRIVE: Drive = Drive::Thread;
    // The stack is as large as the stacks of a JVM's own threads.
    const STACK_BYTES: usize = 1 << 20;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let class = options.get("jvm.class").ok_or_else(|| {
            EngineError::usage("jvm.class is not set: no binding is named").hint(
                "set its class and its class path: -db site.ycsb.db.RedisClient -cp '/opt/ycsb/redis-binding/lib/*'",
            )
        })?;
        let class_path = class_path::entries(options.get("jvm.classpath").unwrap_or_default(), "-cp")?;
        let hosted =
            Hosted::open(options, "ycsb", class_path, &[("db", class)])?.map_err(|text| refuse_class(class, &text))?;
        Ok(Self { hosted, class: class.to_owned() })
    }

    fn guarantee(&self) -> Guarantee {
        let mut guarantee =
            Guarantee::unknown("depends on the binding; nothing is known about it").fact("binding", &self.class);
        guarantee.facts.extend(self.hosted.facts().unwrap_or_default());
        guarantee
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        let hint = "the message comes from the binding; set the properties that its README requires (-p NAME=VALUE)";
        JvmSession::new(self.hosted.machine, self.hosted.store, &self.class, hint)
    }

    fn close(self) -> Result<(), EngineError> {
        self.hosted.close()
    }

    fn is_networked(&self) -> bool {
        self.hosted.networked
    }

    fn collections(&self) -> Vec<Collections> {
        self.hosted.collections()
    }

    fn describe_loss(&self) -> Option<String> {
        self.hosted.describe_loss()
    }
}

/// The reason why a class cannot be used as a binding.
fn refuse_class(class: &str, text: &str) -> EngineError {
    const PATH: &str = "name its jars: -cp '/opt/ycsb/lib/*:/opt/ycsb/NAME-binding/lib/*'";
    if text.contains("site/ycsb/DB") {
        return EngineError::failed("YCSB's core is not on the class path: site.ycsb.DB is not found")
            .hint("mvn dependency:get -Dartifact=site.ycsb:core:0.17.0, or add YCSB's lib/* to -cp");
    }
    if text.contains("ClassNotFoundException") || text.contains("NoClassDefFoundError") {
        let missing = text.rsplit(": ").next().unwrap_or(class).replace('/', ".");
        let what = if missing == class { "the binding".to_owned() } else { format!("a class that {class} needs") };
        return EngineError::usage(format!("{what} is not on the class path: {missing} is not found")).hint(PATH);
    }
    if text.contains("ClassCastException") {
        return EngineError::usage(format!("{class} is not a binding: it does not extend site.ycsb.DB"))
            .hint("-db names a class like site.ycsb.db.RedisClient");
    }
    EngineError::failed(format!("{class} cannot be used: {text}")).hint(PATH)
}
