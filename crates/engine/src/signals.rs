//! Ctrl-C (SIGINT) and SIGTERM: the first ends the load and prints the results so far, the second ends the process.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::{Control, Stop};

/// Turns signals into controls from now on.
pub fn listen(controls: Sender<Control>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        let mut asked = false;
        for _ in signals.forever() {
            if asked {
                // SAFETY: ends the process at once, which is what a second Ctrl-C asks for.
                unsafe { libc::_exit(130) };
            }
            asked = true;
            let _ = controls.send(Control::Stop(Stop::Signal));
        }
    });
}
