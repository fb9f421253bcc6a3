//! Ctrl-C (SIGINT), SIGTERM and the end of the terminal (SIGHUP): the first ends the load and prints the results so
//! far, a second SIGINT or SIGTERM ends the process.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use loadstone_measure::control::{Control, Stop};

/// Converts signals to controls from now on.
pub fn listen(controls: Sender<Control>) {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)) else { return };
    std::thread::spawn(move || {
        let mut stop_requested = false;
        for signal in signals.forever() {
            // A terminal that ends may send several SIGHUP: the kernel and the shell both do.
            if stop_requested && signal != SIGHUP {
                // SAFETY: ends the process at once, which is the purpose of a second Ctrl-C.
                unsafe { libc::_exit(130) };
            }
            stop_requested = true;
            let _ = controls.send(Control::Stop(Stop::Signal));
        }
    });
}

/// Whether the parent process set a signal to be ignored, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: only reads the present action, into memory of the right type; all zeros is a valid value of it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
