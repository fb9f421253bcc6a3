//! The processor time of a generated row: `cargo run --release -p loadstone-stress --example row_cost`.

#![allow(clippy::print_stdout, reason = "a measurement to read")]

use std::hint::black_box;
use std::time::Instant;

use loadstone_stress::row::{Row, RowGenerator, RowShape};

fn main() -> Result<(), String> {
    const ROWS: i64 = 2_000_000;
    let mut generator = RowGenerator::new(&RowShape::default())?;
    let mut row = Row::default();
    for round in 0..5 {
        let start = Instant::now();
        for number in 1..=ROWS {
            generator.fill(number.wrapping_mul(10_000_000_000_000_001), &mut row);
            black_box(&row);
        }
        println!(
            "round {round}: {:.1} ns for a row of 5 columns of 34 bytes",
            start.elapsed().as_nanos() as f64 / ROWS as f64
        );
        let start = Instant::now();
        let mut key = Vec::new();
        for number in 1..=ROWS {
            key.clear();
            black_box(generator.append_key(number.wrapping_mul(10_000_000_000_000_001), &mut key));
            black_box(&key);
        }
        println!("round {round}: {:.1} ns for a key alone", start.elapsed().as_nanos() as f64 / ROWS as f64);
    }
    Ok(())
}
