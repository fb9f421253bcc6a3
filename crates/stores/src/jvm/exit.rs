//! Handles `System.exit` within this process: the JVM calls a hook before it ends the process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// 0 while the JVM is running; then 2^32 plus the exit status.
static ENDED: AtomicU64 = AtomicU64::new(0);
/// Whether [`end_reason`] is polled.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Time for the engine to print its results.
const PRINTING: Duration = Duration::from_secs(30);

/// Called by the JVM as its last action, at a safepoint: all threads that are in Java or return to Java are blocked
/// forever.
pub extern "C" fn hook(status: i32) {
    ENDED.store(1 << 32 | u64::from(status.cast_unsigned()), Ordering::SeqCst);
    if WATCHED.load(Ordering::SeqCst) {
        std::thread::sleep(PRINTING);
    } else {
        let text = format!("error: {}\nhint: {HINT}\n", message(status));
        // SAFETY: these are plain calls. The process has no other way to report the exit, or to end.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: exit handlers would wait for blocked threads, so they are not run.
    unsafe { libc::_exit(1) };
}

const HINT: &str = "a binding that cannot continue must throw an exception; see its output above";

/// Whether the JVM has ended, for callers that do not poll `end_reason`.
pub fn has_ended() -> bool {
    ENDED.load(Ordering::Relaxed) != 0
}

/// The reason why the JVM has ended, or `None` if it has not. A caller that polls this must end the process once there
/// is a reason.
pub fn end_reason() -> Option<String> {
    WATCHED.store(true, Ordering::SeqCst);
    let ended = ENDED.load(Ordering::SeqCst);
    (ended != 0).then(|| message((ended as u32).cast_signed()))
}

fn message(status: i32) -> String {
    format!("the binding called System.exit({status})")
}
