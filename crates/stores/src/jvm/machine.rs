//! The JVM within this process. There is at most one, and it can be started only once.

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use jni_sys::{JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, JavaVMAttachArgs, JavaVMInitArgs, JavaVMOption, jint};
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use super::env::Env;
use super::exit;
use super::home;
use super::host::JvmHost;
use crate::error::EngineError;

/// Default options, which the user's arguments follow and override.
const OPTIONS: &[&str] = &[
    // The engine handles Ctrl-C.
    "-Xrs",
    // Standard output belongs to the engine, so the JVM's warnings and logs are sent to standard error.
    "-XX:+DisplayVMOutputToStderr",
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    // By default, the JVM writes performance counters to a file in /tmp: the writes may wait for a device, and the file
    // may be left behind.
    "-XX:-UsePerfData",
];

/// Time limit for shutdown hooks.
const LEAVING: Duration = Duration::from_secs(10);

/// A running JVM.
#[derive(Debug)]
pub struct Machine {
    vm: *mut JavaVM,
    /// The host's methods.
    pub host: JvmHost,
    class_path: String,
    arguments: Vec<String>,
}

// SAFETY: any thread may use a JavaVM, its classes and its methods.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

static MACHINE: Mutex<Option<&'static Machine>> = Mutex::new(None);

type Create = unsafe extern "system" fn(*mut *mut JavaVM, *mut *mut c_void, *mut c_void) -> jint;

/// Returns the JVM with this class path and these arguments, and starts it if no JVM is running.
pub fn machine(class_path: &str, arguments: &[String]) -> Result<&'static Machine, EngineError> {
    let mut running = MACHINE.lock().map_err(|_| EngineError::failed("the JVM did not start"))?;
    if let Some(machine) = *running {
        if machine.class_path == class_path && machine.arguments == arguments {
            return Ok(machine);
        }
        return Err(EngineError::usage("this process has a JVM with a different class path or arguments")
            .hint("a process has one JVM: use another process"));
    }
    let library = home::library()?;
    let (class_path, arguments) = (class_path.to_owned(), arguments.to_vec());
    // The JVM is created on a separate thread, because the main thread's stack may be unlimited, which a JVM does not
    // expect.
    let started = std::thread::spawn(move || start(&library, class_path, arguments)).join();
    let machine = started.map_err(|_| EngineError::failed("the JVM did not start"))??;
    Ok(running.insert(Box::leak(Box::new(machine))))
}

fn start(path: &Path, class_path: String, arguments: Vec<String>) -> Result<Machine, EngineError> {
    let unusable = |error: libloading::Error| {
        // The loader's message is the `source` of libloading's error.
        let message = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        EngineError::failed(format!("cannot load the JVM from {}: {message}", path.display())).hint(home::HINT)
    };
    // SAFETY: loading runs the library's initialisers. The library is the JVM that the user named.
    let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) }.map_err(unusable)?;
    // SAFETY: the signature is defined by JNI.
    let create: Create = *unsafe { library.get(b"JNI_CreateJavaVM\0") }.map_err(unusable)?;
    // A JVM cannot be unloaded.
    std::mem::forget(library);

    let class_path_option = format!("-Djava.class.path={class_path}");
    let texts = OPTIONS.iter().copied().chain([class_path_option.as_str()]);
    let texts = texts.chain(arguments.iter().map(String::as_str));
    let texts: Vec<CString> = texts
        .map(|text| CString::new(text).map_err(|_| EngineError::usage("an argument of the JVM contains a NUL byte")))
        .collect::<Result<_, _>>()?;
    let mut options: Vec<JavaVMOption> = texts
        .iter()
        .map(|text| JavaVMOption { optionString: text.as_ptr().cast_mut(), extraInfo: std::ptr::null_mut() })
        .collect();
    let hook: extern "C" fn(i32) = exit::hook;
    options.push(JavaVMOption { optionString: c"exit".as_ptr().cast_mut(), extraInfo: hook as *mut c_void });
    let mut init = JavaVMInitArgs {
        version: JNI_VERSION_1_8,
        nOptions: options.len() as jint,
        options: options.as_mut_ptr(),
        ignoreUnrecognized: false,
    };
    let mut vm: *mut JavaVM = std::ptr::null_mut();
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: the arguments have JNI's types, and outlive the call.
    let code = unsafe { create(&raw mut vm, &raw mut env, (&raw mut init).cast()) };
    if code != JNI_OK {
        return Err(EngineError::usage(format!(
            "the JVM did not start with {} (JNI {code})",
            format_arguments(&arguments)
        ))
        .hint("its messages are above; -jvm-args takes the arguments of `java`"));
    }
    // SAFETY: the thread that creates the JVM is attached.
    let env = unsafe { Env::new(env.cast::<JNIEnv>()) };
    let host = JvmHost::find(env);
    // SAFETY: this thread no longer holds any references.
    unsafe { ((**vm).v1_4.DetachCurrentThread)(vm) };
    Ok(Machine { vm, host: host?, class_path, arguments })
}

/// Shuts the JVM down before the process ends: shutdown hooks run and temporary files are deleted, as when YCSB's
/// client calls `System.exit`. Hooks that do not finish are abandoned and reported as an error.
pub fn leave_machine() -> Result<(), String> {
    let machine = MACHINE.lock().ok().and_then(|running| *running);
    let Some(machine) = machine.filter(|_| !exit::has_ended()) else { return Ok(()) };
    let (done, over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if let Ok(env) = machine.env() {
            JvmHost::leave(env);
        }
        let _ = done.send(());
    });
    if over.recv_timeout(LEAVING) == Err(RecvTimeoutError::Timeout) {
        return Err(format!("the binding's shutdown hooks did not finish within {} s", LEAVING.as_secs()));
    }
    Ok(())
}

fn format_arguments(arguments: &[String]) -> String {
    if arguments.is_empty() { "its defaults".to_owned() } else { arguments.join(" ") }
}

thread_local! {
    static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) };
}

/// An attached thread, which the JVM detaches when the thread ends.
struct Attached {
    vm: *mut JavaVM,
    env: Env,
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Detaching from a JVM that has ended would block the thread forever.
        if !exit::has_ended() {
            // SAFETY: this thread is attached, and no call is in flight.
            unsafe { ((**self.vm).v1_4.DetachCurrentThread)(self.vm) };
        }
    }
}

impl Machine {
    /// Returns the JNI environment of this thread. The first call attaches the thread.
    pub fn env(&self) -> Result<Env, EngineError> {
        ATTACHED.with_borrow_mut(|attached| {
            if let Some(attached) = attached {
                return Ok(attached.env);
            }
            let name = std::thread::current().name().and_then(|name| CString::new(name).ok()).unwrap_or_default();
            let mut arguments = JavaVMAttachArgs {
                version: JNI_VERSION_1_8,
                name: name.as_ptr().cast_mut(),
                group: std::ptr::null_mut(),
            };
            let mut env: *mut c_void = std::ptr::null_mut();
            // SAFETY: the arguments have JNI's types, and outlive the call. The thread is a daemon, so that nothing
            // waits for it.
            let code = unsafe {
                ((**self.vm).v1_4.AttachCurrentThreadAsDaemon)(self.vm, &raw mut env, (&raw mut arguments).cast())
            };
            if code != JNI_OK {
                return Err(EngineError::failed(format!("the JVM cannot attach another thread (JNI {code})"))
                    .hint("use fewer clients, or more memory"));
            }
            // SAFETY: this thread stays attached until it ends.
            let env = unsafe { Env::new(env.cast::<JNIEnv>()) };
            *attached = Some(Attached { vm: self.vm, env });
            Ok(env)
        })
    }
}
