"""The suitability of this machine for measuring: a snapshot, and checks that are pure functions of the snapshot."""
