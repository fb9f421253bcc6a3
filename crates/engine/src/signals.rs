//! Handles Ctrl-C (SIGINT), SIGTERM and a closed terminal (SIGHUP). The first signal stops the load and prints the
//! results so far; a second SIGINT or SIGTERM ends the process.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use loadstone_measure::control::{Control, Stop};

/// Starts to convert signals to controls.
pub fn forward_signals(controls: Sender<Control>) {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)) else { return };
    std::thread::spawn(move || {
        let mut stop_requested = false;
        for signal in signals.forever() {
            // Closing a terminal may send several SIGHUPs: the kernel and the shell both send one.
            if stop_requested && signal != SIGHUP {
                // SAFETY: exits the process at once, which is the purpose of a second Ctrl-C.
                unsafe { libc::_exit(130) };
            }
            stop_requested = true;
            let _ = controls.send(Control::Stop(Stop::Signal));
        }
    });
}

/// Whether this process was started with the signal ignored, as by `nohup`.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: only reads the current action into memory of the right type, for which all zeros is a valid value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
