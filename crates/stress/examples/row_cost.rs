//! Measures the time for generating a row: `cargo run --release -p loadstone-stress --example row_cost [ROWS]`.

#![allow(clippy::print_stdout, reason = "a measurement to read")]

use std::hint::black_box;
use std::time::Instant;

use loadstone_stress::row::{ColumnRow, RowGenerator, RowShape};

fn main() -> Result<(), String> {
    let rows: i64 = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(2_000_000);
    let mut generator = RowGenerator::new(&RowShape::default())?;
    let mut row = ColumnRow::default();
    for round in 0..5 {
        let start = Instant::now();
        for number in 1..=rows {
            generator.fill(number.wrapping_mul(10_000_000_000_000_001), &mut row);
            black_box(&row);
        }
        println!(
            "round {round}: {:.1} ns for a row of 5 columns of 34 bytes",
            start.elapsed().as_nanos() as f64 / rows as f64
        );
        let start = Instant::now();
        let mut key = Vec::new();
        for number in 1..=rows {
            key.clear();
            black_box(generator.append_key(number.wrapping_mul(10_000_000_000_000_001), &mut key));
            black_box(&key);
        }
        println!("round {round}: {:.1} ns for a key alone", start.elapsed().as_nanos() as f64 / rows as f64);
    }
    Ok(())
}
