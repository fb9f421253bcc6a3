//! The rows of a partition, generated one at a time.
//!
//! Source: Cassandra's `PartitionIterator.java`. In this class, the values of a clustering column depend on the
//! partition, but not on the row's values of other clustering columns. A partition is therefore the product of the
//! values of its clustering columns, here called levels. The values outside the primary key depend on the partition and
//! on the row's value of the last level. Any row can therefore be generated without the preceding rows, and the values
//! of a large level need not be stored.

mod level;

use crate::compat::Compat;
use crate::cql::CqlType;
use crate::distribution::Spec;
use crate::settings::Order;
use crate::value::{ValueGenerator, ValueSpecs};
use level::ClusteringLevel;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// The type of the column's values.
    pub kind: CqlType,
    /// How the values are generated.
    pub specs: ValueSpecs,
}

/// The columns of a table, grouped by role and in the server's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionLayout {
    /// The partition key.
    pub key: Vec<Column>,
    /// The clustering columns.
    pub clustering: Vec<Column>,
    /// All other columns, including static columns.
    pub values: Vec<Column>,
    /// The indices of the static columns in `values`.
    pub statics: Vec<usize>,
    /// Whether writing a row again changes it. This is true for counters, and for lists to which writes append.
    pub accumulates: bool,
}

/// The place of a column in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    /// In the partition key.
    Key(usize),
    /// Among the clustering columns.
    Clustering(usize),
    /// Among the other columns.
    Value(usize),
}

impl PartitionLayout {
    /// The place of the column with this name.
    pub fn place(&self, name: &str) -> Option<ColumnPlace> {
        let find = |columns: &[Column]| columns.iter().position(|column| column.name == name);
        find(&self.key)
            .map(ColumnPlace::Key)
            .or_else(|| find(&self.clustering).map(ColumnPlace::Clustering))
            .or_else(|| find(&self.values).map(ColumnPlace::Value))
    }

    /// The column at a place.
    pub fn column(&self, place: ColumnPlace) -> &Column {
        match place {
            ColumnPlace::Key(at) => &self.key[at],
            ColumnPlace::Clustering(at) => &self.clustering[at],
            ColumnPlace::Value(at) => &self.values[at],
        }
    }

    /// The minimum, maximum and expected number of rows in a partition, according to the distributions.
    pub fn row_counts(&self) -> Result<(f64, f64, f64), String> {
        let mut counts = (1.0, 1.0, 1.0);
        for column in &self.clustering {
            let sampler = column.specs.cluster.as_ref().unwrap_or(&Spec::Fixed { value: 1 }).sampler()?;
            let (first, last) = (sampler.min(), sampler.max());
            counts.0 *= first.min(last).max(0) as f64;
            counts.1 *= first.max(last).max(0) as f64;
            counts.2 *= mean(column.specs.cluster.as_ref())?;
        }
        Ok(counts)
    }
}

/// The mean of a distribution; 1 for `None`.
pub fn mean(spec: Option<&Spec>) -> Result<f64, String> {
    /// Number of quantiles that are averaged, each of which represents 1 ‰ of the draws.
    const STEPS: u32 = 1_000;
    let Some(spec) = spec else { return Ok(1.0) };
    if let Spec::Presets(presets) = spec {
        let total: f64 = presets.iter().map(|preset| preset.percent).sum();
        return Ok(presets.iter().map(|preset| preset.percent * preset.value).sum::<f64>() / total);
    }
    let sampler = spec.sampler()?;
    let sum: f64 = (0..STEPS).map(|step| sampler.quantile((f64::from(step) + 0.5) / f64::from(STEPS)) as f64).sum();
    Ok(sum / f64::from(STEPS))
}

/// Generates the rows of partitions. Each client has one generator. Once the buffers have grown, generating rows in
/// arbitrary order allocates no memory.
#[derive(Clone, Debug)]
pub struct PartitionGenerator {
    key: Vec<ValueGenerator>,
    levels: Vec<ClusteringLevel>,
    values: Vec<ValueGenerator>,
    order: Order,
    accumulates: bool,
    /// The last position that the tool writes, by level.
    tool_ends: Vec<i64>,
    /// The key of the open partition.
    key_bytes: Vec<u8>,
    key_ends: Vec<usize>,
    leaf_seed: i64,
    row_seed: i64,
    /// The position of the current row's value in each level.
    places: Vec<u64>,
}

impl PartitionGenerator {
    /// A generator of rows for a table.
    ///
    /// # Errors
    /// A distribution has no sampler.
    pub fn new(layout: &PartitionLayout, compat: Compat, order: Order) -> Result<Self, String> {
        let generators = |columns: &[Column]| -> Result<Vec<ValueGenerator>, String> {
            let generator = |column: &Column| {
                ValueGenerator::new(&column.name, &column.kind, &column.specs, compat)
                    .map_err(|reason| format!("column {}: {reason}", column.name))
            };
            columns.iter().map(generator).collect()
        };
        let levels: Vec<ClusteringLevel> =
            generators(&layout.clustering)?.into_iter().map(ClusteringLevel::new).collect();
        Ok(Self {
            key: generators(&layout.key)?,
            tool_ends: find_tool_ends(&levels),
            levels,
            values: generators(&layout.values)?,
            order,
            accumulates: layout.accumulates,
            key_bytes: Vec::new(),
            key_ends: Vec::new(),
            leaf_seed: 0,
            row_seed: 0,
            places: vec![0; layout.clustering.len()],
        })
    }

    /// Opens the partition with this seed. `random` draws a number below its argument, for `contents=shuffled`.
    ///
    /// # Errors
    /// A level has too many values.
    pub fn open(&mut self, seed: i64, mut random: impl FnMut(u64) -> u64) -> Result<(), String> {
        self.key_bytes.clear();
        self.key_ends.clear();
        let mut below = 0;
        for column in &mut self.key {
            let start = self.key_bytes.len();
            column.seed(seed);
            column.append(&mut self.key_bytes);
            below = column.chain(&self.key_bytes[start..], below);
            self.key_ends.push(self.key_bytes.len());
        }
        for level in &mut self.levels {
            below = level.open(below, self.order, self.accumulates, &mut random)?;
        }
        self.leaf_seed = below;
        self.row_seed = below;
        Ok(())
    }

    /// The seed derived from the partition key. The values of a table without clustering columns are seeded with it.
    pub fn identity(&self) -> i64 {
        self.levels.first().map_or(self.leaf_seed, |level| level.seed)
    }

    /// The number of rows in the open partition.
    pub fn rows(&self) -> u64 {
        self.levels.iter().map(|level| level.count).fold(1, u64::saturating_mul)
    }

    /// The number of rows that the tool writes, which are the first rows of the open partition.
    ///
    /// If a table has three or more clustering columns, the tool may end a partition early. When it has used all values
    /// of a column, it compares only the position in the preceding column with the last position, which is calculated
    /// from averages.
    ///
    /// Source: `PartitionIterator.MultiRowIterator.advance` and `compareToLastRow`.
    pub fn tool_rows(&self) -> u64 {
        let leaf = self.levels.len().wrapping_sub(1);
        let counts: Vec<i64> = self.levels.iter().map(|level| level.count as i64).collect();
        let mut at = vec![0; counts.len()];
        let (mut depth, mut rows) = (0, 0);
        while let Some(count) = counts.get(depth) {
            if at[depth] >= *count {
                if depth == 0 {
                    break;
                }
                depth -= 1;
                at[depth] += 1;
                if at[depth] > self.tool_ends[depth] {
                    break;
                }
            } else if at[..=depth] > self.tool_ends[..=depth] {
                break;
            } else if depth < leaf {
                depth += 1;
                at[depth] = 0;
            } else {
                rows += 1;
                at[depth] += 1;
            }
        }
        rows
    }

    /// Makes the given row the current row.
    #[inline]
    pub fn seek(&mut self, row: u64) {
        let mut rest = row;
        for (level, place) in self.levels.iter_mut().zip(&mut self.places).rev() {
            *place = rest % level.count.max(1);
            rest /= level.count.max(1);
            level.seek(*place);
        }
        if let (Some(leaf), Some(place)) = (self.levels.last(), self.places.last()) {
            self.row_seed = leaf.generator.chain(leaf.value(*place), self.leaf_seed);
        }
    }

    /// The value of a column of the partition key.
    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.key_ends[at - 1] };
        &self.key_bytes[start..self.key_ends[at]]
    }

    /// The value of a clustering column in the current row.
    #[inline]
    pub fn clustering(&self, at: usize) -> &[u8] {
        self.levels[at].value(self.places[at])
    }

    /// Appends the value of a column outside the primary key in the current row.
    #[inline]
    pub fn append_value(&mut self, at: usize, out: &mut Vec<u8>) {
        let column = &mut self.values[at];
        column.seed(self.row_seed);
        column.append(out);
    }

    /// Appends the value of any column in the current row.
    #[inline]
    pub fn append(&mut self, place: ColumnPlace, out: &mut Vec<u8>) {
        match place {
            ColumnPlace::Key(at) => out.extend_from_slice(self.key(at)),
            ColumnPlace::Clustering(at) => out.extend_from_slice(self.clustering(at)),
            ColumnPlace::Value(at) => self.append_value(at, out),
        }
    }
}

/// The last position that the tool writes, by level: the maximum number of rows, divided by the average numbers of rows
/// below each level.
///
/// Source: `PartitionIterator.MultiRowIterator.reset` and `decompose`.
fn find_tool_ends(levels: &[ClusteringLevel]) -> Vec<i64> {
    let averages: Vec<i64> = levels.iter().map(|level| level.generator.cluster().average().max(1)).collect();
    let most: f64 = levels.iter().map(|level| level.generator.cluster().max() as f64).product();
    let mut rest = i64::from(most as i32);
    let mut ends = Vec::with_capacity(levels.len());
    for at in 0..levels.len() {
        let below = averages[at + 1..].iter().fold(1_i64, |product, average| product.saturating_mul(*average));
        ends.push(rest / below);
        rest %= below;
    }
    for at in (1..ends.len()).rev() {
        ends[at - 1] += ends[at] / averages[at];
        ends[at] %= averages[at];
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::parse_spec;

    const CASES: &str = include_str!("../fixtures/profile-columns.txt");
    const ROWS: &str = include_str!("../fixtures/profile-rows.txt");

    fn column(text: &str) -> Column {
        let mut parts = text.split(' ');
        let (name, kind) = (parts.next().unwrap().to_owned(), CqlType::parse(parts.next().unwrap()).unwrap());
        let mut specs = ValueSpecs::default();
        for part in parts {
            let (key, spec) = part.split_once('=').unwrap();
            let spec = Some(parse_spec(spec).unwrap());
            match key {
                "size" => specs.size = spec,
                "population" => specs.population = spec,
                _ => specs.cluster = spec,
            }
        }
        Column { name, kind, specs }
    }

    fn layout(line: &str) -> (String, PartitionLayout) {
        let fields: Vec<&str> = line.split('|').collect();
        let columns = |list: &str| {
            list.split(';').filter(|text| !text.trim().is_empty()).map(|text| column(text.trim())).collect()
        };
        let layout = PartitionLayout {
            key: columns(fields[1]),
            clustering: columns(fields[2]),
            values: columns(fields[3]),
            ..PartitionLayout::default()
        };
        (fields[0].to_owned(), layout)
    }

    fn hex(bytes: &[u8]) -> String {
        if bytes.is_empty() { "-".to_owned() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    fn row(generator: &mut PartitionGenerator, layout: &PartitionLayout, at: u64) -> String {
        generator.seek(at);
        let mut cells: Vec<String> = (0..layout.clustering.len()).map(|at| hex(generator.clustering(at))).collect();
        for at in 0..layout.values.len() {
            let mut value = Vec::new();
            generator.append_value(at, &mut value);
            cells.push(hex(&value));
        }
        cells.join(" ")
    }

    /// Every type that the tool supports, several clustering columns, composite keys, and duplicate clustering values.
    #[test]
    fn rows_match_the_tool() {
        let layouts: Vec<(String, PartitionLayout)> =
            CASES.lines().filter(|line| !line.starts_with('#')).map(layout).collect();
        let mut count = 0;
        for line in ROWS.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let layout = &layouts.iter().find(|(name, _)| name == fields[0]).unwrap().1;
            let mut generator = PartitionGenerator::new(layout, Compat::V4, Order::Arbitrary).unwrap();
            generator.open(fields[1].parse().unwrap(), |_| 0).unwrap();
            let key: Vec<String> = (0..layout.key.len()).map(|at| hex(generator.key(at))).collect();
            assert_eq!(
                (key.join(" ").as_str(), generator.identity().to_string().as_str()),
                (fields[2], fields[3]),
                "{line}"
            );
            let rows: Vec<String> = (0..generator.rows().min(40)).map(|at| row(&mut generator, layout, at)).collect();
            assert_eq!(rows, fields[4..], "{} {}", fields[0], fields[1]);
            count += 1;
        }
        assert_eq!(count, 31);
    }

    /// The row counts of the partitions 1 to 20, recorded with version 4.0-alpha2.
    #[test]
    fn tool_ends_partitions_early() {
        for (text, rows, tool_rows) in [
            (
                "levels|id text size=uniform(5..10) population=uniform(1..10M)|a int cluster=uniform(1..4);b bigint cluster=fixed(2);c text cluster=gaussian(1..3)||",
                130,
                28,
            ),
            (
                "three|id bigint|a int cluster=uniform(1..4);b text cluster=uniform(1..5);c int cluster=uniform(1..4)||",
                378,
                88,
            ),
            ("two|id bigint|a int cluster=uniform(1..4);b text cluster=fixed(3)||", 165, 165),
            ("series|id int|a int cluster=fixed(20)||", 400, 400),
        ] {
            let (_, layout) = layout(text);
            let mut generator = PartitionGenerator::new(&layout, Compat::V4, Order::Arbitrary).unwrap();
            let mut sums = (0, 0);
            for number in 1..=20_i64 {
                generator.open(number * 10_000_000_000_000_001, |_| 0).unwrap();
                sums = (sums.0 + generator.rows(), sums.1 + generator.tool_rows());
            }
            assert_eq!(sums, (rows, tool_rows), "{text}");
        }
    }

    #[test]
    fn ten_million_rows_need_the_memory_of_one() {
        let (_, layout) = layout("wide|k int|c bigint cluster=fixed(10M)|v text|");
        let mut generator = PartitionGenerator::new(&layout, Compat::V4, Order::Arbitrary).unwrap();
        generator.open(7, |_| 0).unwrap();
        assert_eq!(generator.rows(), 10_000_000);
        let last = row(&mut generator, &layout, 9_999_999);
        let first = row(&mut generator, &layout, 0);
        // Generating one row after another gives the same row as jumping to it.
        let mut walk = String::new();
        for at in 0..5_000 {
            walk = row(&mut generator, &layout, at);
        }
        assert_eq!(walk, row(&mut generator, &layout, 4_999));
        assert_eq!(last, row(&mut generator, &layout, 9_999_999));
        assert_ne!(first, last);
        let level = &generator.levels[0];
        assert!(level.capacity() < 64);
    }

    #[test]
    fn sorted_contents_have_the_order_of_the_server() {
        let (_, layout) = layout("sorted|k int|c int cluster=fixed(500) population=gaussian(-1000..1000)||");
        for order in [Order::Sorted, Order::Shuffled] {
            let mut generator = PartitionGenerator::new(&layout, Compat::V4, order).unwrap();
            generator.open(7, |below| below - 1).unwrap();
            let mut values: Vec<i32> = Vec::new();
            for at in 0..generator.rows() {
                generator.seek(at);
                values.push(i32::from_be_bytes(generator.clustering(0).try_into().unwrap()));
            }
            assert!(values.len() < 500, "duplicates are dropped");
            assert_eq!(values.is_sorted(), order == Order::Sorted);
        }
    }

    #[test]
    fn presets_give_the_sizes_of_partitions() {
        let (_, layout) = layout("presets|k int|c int cluster=presets(70:1,20:2.5,10:30)||");
        let mut generator = PartitionGenerator::new(&layout, Compat::V4, Order::Arbitrary).unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..10_000_i64 {
            generator.open(seed.wrapping_mul(10_000_000_000_000_001), |_| 0).unwrap();
            *counts.entry(generator.rows()).or_insert(0) += 1;
        }
        let share = |rows: u64| f64::from(counts[&rows]) / 10_000.0;
        for (rows, expected) in [(1, 0.7), (2, 0.1), (3, 0.1), (30, 0.1)] {
            assert!((share(rows) - expected).abs() < 0.02, "{rows}: {counts:?}");
        }
        assert_eq!(layout.row_counts().unwrap(), (1.0, 30.0, 4.2));
    }
}
