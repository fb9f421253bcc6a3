"""Whether this machine is fit for measuring: a snapshot of it, and checks that are pure functions of the snapshot."""
