"""Whether this machine is fit to measure on: a snapshot of it, and checks that are pure functions of the snapshot."""
