//! Doors: the command lines of older tools. A door translates arguments into a TrialSpec and prints the older format.

pub mod ycsb;
