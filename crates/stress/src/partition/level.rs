//! The values of one clustering column of a partition.

use crate::settings::Order;
use crate::value::ValueGenerator;

/// A level with more values than this stores them only if they must be sorted or shuffled, or if no row may be written
/// twice. Otherwise, the values are generated when they are needed, and duplicates are not dropped. A duplicate only
/// writes the same row again.
const KEPT_MAX: u64 = 4_096;
/// A level with more values than this is refused if the values must be sorted or shuffled, or if no row may be written
/// twice.
const HELD_MAX: u64 = 1_000_000;

/// The values of one clustering column.
#[derive(Clone, Debug)]
pub struct ClusteringLevel {
    pub generator: ValueGenerator,
    pub seed: i64,
    pub count: u64,
    /// All values, if they are stored.
    values: Vec<u8>,
    ends: Vec<u32>,
    is_kept: bool,
    /// The value at `place`, if values are not stored.
    current: Vec<u8>,
    place: u64,
    /// Buffer for finding duplicates.
    order: Vec<u32>,
}

impl ClusteringLevel {
    pub fn new(generator: ValueGenerator) -> Self {
        Self {
            generator,
            seed: 0,
            count: 0,
            values: Vec::new(),
            ends: Vec::new(),
            is_kept: true,
            current: Vec::new(),
            place: 0,
            order: Vec::new(),
        }
    }

    /// The number of elements for which the buffers have room.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.values.capacity() + self.ends.capacity() + self.order.capacity() + self.current.capacity()
    }

    /// Starts generating the values for a seed, and returns the seed for the next level.
    pub fn open(
        &mut self,
        seed: i64,
        order: Order,
        accumulates: bool,
        mut random: impl FnMut(u64) -> u64,
    ) -> Result<i64, String> {
        self.seed = seed;
        let count = self.generator.seed_level(seed);
        self.count = count;
        let must_keep = order != Order::Arbitrary || accumulates;
        self.is_kept = count <= KEPT_MAX || must_keep;
        if !self.is_kept {
            self.current.clear();
            self.generator.append(&mut self.current);
            self.place = 0;
            return Ok(self.generator.chain(&self.current, seed));
        }
        if count > HELD_MAX {
            return Err(format!(
                "{count} values of a clustering column cannot be sorted, shuffled, or written only once; the limit is {HELD_MAX}"
            ));
        }
        self.values.clear();
        self.ends.clear();
        for _ in 0..count {
            self.generator.append(&mut self.values);
            self.ends.push(self.values.len() as u32);
        }
        let below = if count == 0 { seed } else { self.generator.chain(self.value(0), seed) };
        if count > 1 {
            self.drop_duplicates();
        }
        if order != Order::Arbitrary {
            self.arrange_values(order, &mut random);
        }
        Ok(below)
    }

    /// Drops all but the first of several values with equal bytes.
    fn drop_duplicates(&mut self) {
        let Self { values, ends, order, .. } = self;
        let value =
            |at: u32| &values[if at == 0 { 0 } else { ends[at as usize - 1] as usize }..ends[at as usize] as usize];
        order.clear();
        order.extend(0..ends.len() as u32);
        order.sort_unstable_by(|a, b| value(*a).cmp(value(*b)).then(a.cmp(b)));
        let mut first = 0;
        order.retain(|at| {
            let is_first = *at == order_first(&mut first, *at, &value);
            !is_first
        });
        if order.is_empty() {
            return;
        }
        order.sort_unstable();
        let (mut next, mut count, mut write) = (0, 0, 0);
        let mut start = 0;
        for at in 0..ends.len() {
            let end = ends[at] as usize;
            if order.get(next) == Some(&(at as u32)) {
                next += 1;
            } else {
                values.copy_within(start..end, write);
                write += end - start;
                ends[count] = write as u32;
                count += 1;
            }
            start = end;
        }
        ends.truncate(count);
        values.truncate(write);
        self.count = count as u64;
    }

    /// Sorts or shuffles the values.
    fn arrange_values(&mut self, order: Order, random: &mut impl FnMut(u64) -> u64) {
        let mut all: Vec<Vec<u8>> = (0..self.count).map(|at| self.value(at).to_vec()).collect();
        match order {
            Order::Sorted => all.sort_by(|a, b| self.generator.kind().compare(a, b)),
            _ => {
                for at in (1..all.len()).rev() {
                    all.swap(at, random(at as u64 + 1) as usize);
                }
            }
        }
        self.values.clear();
        self.ends.clear();
        for value in all {
            self.values.extend_from_slice(&value);
            self.ends.push(self.values.len() as u32);
        }
    }

    /// The bytes of a value. If values are not stored, call [`Self::seek`] first.
    #[inline]
    pub fn value(&self, at: u64) -> &[u8] {
        if !self.is_kept {
            return &self.current;
        }
        let at = at as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.values[start..self.ends[at] as usize]
    }

    #[inline]
    pub fn seek(&mut self, at: u64) {
        if self.is_kept || at == self.place {
            return;
        }
        if at < self.place {
            self.generator.seed_level(self.seed);
            self.generator.skip(at);
        } else {
            self.generator.skip(at - self.place - 1);
        }
        self.current.clear();
        self.generator.append(&mut self.current);
        self.place = at;
    }
}

/// The first position that has the same value as `at`, provided that equal values are adjacent.
fn order_first<'a>(first: &mut u32, at: u32, value: &impl Fn(u32) -> &'a [u8]) -> u32 {
    if value(*first) != value(at) {
        *first = at;
    }
    *first
}
