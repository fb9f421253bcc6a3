//! The methods of the host (`java/src/main/java/loadstone/host/Host.java`), which are looked up once.

use std::ffi::CStr;

use jni_sys::{jclass, jmethodID, jobject, jvalue};
use loadstone_load::Status;

use super::env::{Env, Thrown};
use super::home;
use crate::error::EngineError;
use crate::session::Collections;

/// The host's class and methods.
#[derive(Debug)]
pub struct JvmHost {
    class: jclass,
    call: jmethodID,
    share: jmethodID,
    message: jmethodID,
    open: jmethodID,
    facts: jmethodID,
    close: jmethodID,
    client: jmethodID,
    connect: jmethodID,
    describe: jmethodID,
    collectors: jmethodID,
    /// The statuses, indexed by the host's status numbers.
    statuses: Vec<Status>,
}

fn object(object: jobject) -> jvalue {
    jvalue { l: object }
}

impl JvmHost {
    /// Looks up all methods and prepares the JVM.
    pub fn find(env: Env) -> Result<Self, EngineError> {
        Self::resolve(env).map_err(|thrown| {
            let message = env.plain_words(&thrown);
            // If the JVM does not support the version of the class, a newer JVM is needed.
            let hint =
                if message.contains("UnsupportedClassVersionError") { home::HINT } else { "rebuild with `make`" };
            EngineError::failed(format!("the JVM cannot run the host: {message}")).hint(hint)
        })
    }

    fn resolve(env: Env) -> Result<Self, Thrown> {
        let class = env.class(c"loadstone/host/Host")?;
        let method = |name: &CStr, signature: &CStr| env.method(class, name, signature);
        let start = method(c"start", c"()[B")?;
        let mut host = Self {
            class,
            call: method(c"call", c"(Lloadstone/host/Client;IIII)J")?,
            share: method(c"share", c"(Lloadstone/host/Client;Ljava/nio/ByteBuffer;)V")?,
            message: method(c"words", c"(Lloadstone/host/Client;)[B")?,
            open: method(c"open", c"([B)Lloadstone/host/Store;")?,
            facts: method(c"facts", c"(Lloadstone/host/Store;)[B")?,
            close: method(c"close", c"(Lloadstone/host/Store;)V")?,
            client: method(c"client", c"(Lloadstone/host/Store;)Lloadstone/host/Client;")?,
            connect: method(c"connect", c"(Lloadstone/host/Client;)V")?,
            describe: method(c"describe", c"(Ljava/lang/Throwable;)[B")?,
            collectors: method(c"collectors", c"()[B")?,
            statuses: Vec::new(),
        };
        // SAFETY: the method has no arguments and returns bytes.
        let names = env.bytes(unsafe { env.call_object(class, start, &[]) }?);
        let status = |name: &str| Status::ALL.into_iter().find(|s| s.name() == name).unwrap_or(Status::Error);
        host.statuses = String::from_utf8_lossy(&names).lines().map(status).collect();
        Ok(host)
    }

    /// Runs the JVM's shutdown hooks. `Shutdown.shutdown` is the method that JNI's `DestroyJavaVM` calls after waiting
    /// for all non-daemon threads; YCSB's client does not wait for threads.
    pub fn leave(env: Env) {
        let shutdown = env.class(c"java/lang/Shutdown").and_then(|class| {
            let method = env.method(class, c"shutdown", c"()V")?;
            // SAFETY: the method has no arguments.
            unsafe { env.call_void(class, method, &[]) }
        });
        // If the JVM lacks this method, there is no alternative, so the error is ignored.
        drop(shutdown);
    }

    /// The status with this number.
    #[inline]
    pub fn status(&self, number: usize) -> Status {
        self.statuses.get(number).copied().unwrap_or(Status::Error)
    }

    /// The message of an exception.
    pub fn describe(&self, env: Env, thrown: &Thrown) -> String {
        // SAFETY: the method takes an exception and returns bytes.
        let message = unsafe { env.call_object(self.class, self.describe, &[object(thrown.0)]) };
        env.forget_local(thrown.0);
        message.map_or_else(
            |_| "no message".to_owned(),
            |message| String::from_utf8_lossy(&env.bytes(message)).into_owned(),
        )
    }

    /// Opens a store, and returns a global reference to it.
    pub fn open(&self, env: Env, request: &[u8]) -> Result<jobject, String> {
        let opened = env.array(request).and_then(|request| {
            // SAFETY: the method takes bytes and returns a store.
            let store = unsafe { env.call_object(self.class, self.open, &[object(request)]) };
            env.forget_local(request);
            store
        });
        opened.map(|store| env.global(store)).map_err(|thrown| self.describe(env, &thrown))
    }

    /// A store's facts, as pairs of names and values.
    pub fn facts(&self, env: Env, store: jobject) -> Result<Vec<(String, String)>, String> {
        // SAFETY: the method takes a store and returns bytes.
        let lines = unsafe { env.call_object(self.class, self.facts, &[object(store)]) };
        let lines = lines.map_err(|thrown| self.describe(env, &thrown))?;
        let text = String::from_utf8_lossy(&env.bytes(lines)).into_owned();
        Ok(text.lines().filter_map(|line| line.split_once('\t')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    }

    /// Closes a store and deletes its reference.
    pub fn close(&self, env: Env, store: jobject) -> Result<(), String> {
        // SAFETY: the method takes a store.
        let closed = unsafe { env.call_void(self.class, self.close, &[object(store)]) };
        env.delete_global(store);
        closed.map_err(|thrown| self.describe(env, &thrown))
    }

    /// Creates an unconnected client of a store. Returns a global reference to the client.
    pub fn client(&self, env: Env, store: jobject) -> Result<jobject, String> {
        // SAFETY: the method takes a store and returns a client.
        let client = unsafe { env.call_object(self.class, self.client, &[object(store)]) };
        client.map(|client| env.global(client)).map_err(|thrown| self.describe(env, &thrown))
    }

    /// Connects a client.
    pub fn connect(&self, env: Env, client: jobject) -> Result<(), String> {
        // SAFETY: the method takes a client.
        let connected = unsafe { env.call_void(self.class, self.connect, &[object(client)]) };
        connected.map_err(|thrown| self.describe(env, &thrown))
    }

    /// Passes a client the memory that it shares with the engine.
    ///
    /// # Safety
    /// The memory must exist until the client receives other memory or is no longer called.
    pub unsafe fn share(&self, env: Env, client: jobject, memory: *mut u8, len: usize) -> Result<(), String> {
        // SAFETY: guaranteed by the caller; the method takes a client and a buffer.
        let shared = unsafe {
            env.buffer(memory, len).and_then(|buffer| {
                let shared = env.call_void(self.class, self.share, &[object(client), object(buffer)]);
                env.forget_local(buffer);
                shared
            })
        };
        shared.map_err(|thrown| self.describe(env, &thrown))
    }

    /// Executes one operation. Returns 0 if an exception prevented the operation.
    #[inline]
    pub fn call(&self, env: Env, client: jobject, numbers: [i32; 4]) -> i64 {
        let [operation, key_len, len, count] = numbers.map(|i| jvalue { i });
        // SAFETY: the method takes a client and four numbers, and returns a number.
        unsafe { env.call_long(self.class, self.call, &[object(client), operation, key_len, len, count]) }
    }

    /// The message of a client's last failure.
    pub fn failure_message(&self, env: Env, client: jobject) -> Option<String> {
        // SAFETY: the method takes a client and returns bytes or null.
        let message = unsafe { env.call_object(self.class, self.message, &[object(client)]) };
        match message {
            Ok(message) if message.is_null() => None,
            Ok(message) => Some(String::from_utf8_lossy(&env.bytes(message)).into_owned()),
            Err(thrown) => Some(self.describe(env, &thrown)),
        }
    }

    /// The activity of the garbage collectors so far.
    pub fn collectors(&self, env: Env) -> Vec<Collections> {
        // SAFETY: the method has no arguments and returns bytes.
        let Ok(lines) = (unsafe { env.call_object(self.class, self.collectors, &[]) }) else { return Vec::new() };
        let text = String::from_utf8_lossy(&env.bytes(lines)).into_owned();
        let collector = |line: &str| {
            let mut parts = line.split('\t');
            let name = parts.next()?.to_owned();
            Some(Collections {
                collector: name,
                count: parts.next()?.parse().ok()?,
                time_ms: parts.next()?.parse().ok()?,
            })
        };
        text.lines().filter_map(collector).collect()
    }
}
