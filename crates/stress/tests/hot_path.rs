//! Tests that a client's hot path generates numbers, rows and increments without allocating memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use loadstone_stress::command_line::{CommandLineRequest, parse};
use loadstone_stress::population::Population;
use loadstone_stress::row::{ColumnRow, Increments, RowGenerator, RowShape};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are passed to the system allocator, and counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn operations_allocate_nothing() {
    for population in ["seq=1..1000", "dist=gaussian(1..1M)", "dist=~exp(1..1M)", "dist=qextreme(1..1M,2,100)"] {
        let line = format!(
            "mixed ratio(read=1,write=1,counter_write=1) n=10 add=uniform(1..9) -col size=fixed(34) -pop {population} \
             -insert row-population-ratio=uniform(1..100)/100"
        );
        let Ok(CommandLineRequest::Run(settings)) = parse(&[line]) else { panic!() };
        let selection = &settings.population.selection;
        let mut population = Population::new(selection, &settings.insert.revisit, settings.compat, None, 1).unwrap();
        let shape = RowShape {
            key_bytes: settings.command.key_bytes as usize,
            columns: settings.columns.names,
            size: settings.columns.size,
            population_ratio: settings.insert.row_population_ratio,
        };
        let mut rows = RowGenerator::new(&shape).unwrap();
        let mut increments = Increments::new(&settings.command.add.spec, 1).unwrap();
        let (mut row, mut values) = (ColumnRow::default(), Vec::new());
        let mut perform = |index| {
            let number = population.number_at(index).unwrap();
            let seed = population.seed_of(number);
            if index % 3 == 0 {
                row.key.clear();
                rows.append_key(seed, &mut row.key);
                increments.fill(index, 5, &mut values);
            } else {
                rows.fill(seed, &mut row);
            }
            row.columns().flatten().map(<[u8]>::len).sum::<usize>()
        };
        let mut bytes: usize = (0..20_000).map(&mut perform).sum();
        let before = COUNT.with(Cell::get);
        bytes += (20_000..40_000).map(&mut perform).sum::<usize>();
        assert_eq!(COUNT.with(Cell::get) - before, 0);
        assert!(bytes > 0);
    }
}
