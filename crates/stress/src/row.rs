//! The rows of the predefined tables, byte for byte as in the tool: a key, and blobs or counters (by default, five).
//!
//! Sources: Cassandra's `PartitionIterator.java`, `HexBytes.java`, `Bytes.java`, `SettingsCommandPreDefined.java`.

use crate::distribution::{Distribution, RatioSpec, Spec};
use crate::random::{FasterRandom, JavaRandom, hash_salt, mix_seed};

/// The greatest identity + 1: the tool draws the identities of keys and values from `uniform(1..100B)`.
const IDENTITY_MAX: f64 = 100_000_000_001.0;
/// Separates the draws of the ratio from other draws with the same seeds.
const RATIO: u64 = 0x7261_7469;
const INCREMENT: u64 = 0x6164_6421;

/// The shape of a table's rows.
#[derive(Clone, Debug)]
pub struct RowShape {
    /// Length of the key in bytes (`keysize=`).
    pub key_bytes: usize,
    /// Names of the value columns, in the order of the statements.
    pub columns: Vec<String>,
    /// Length of a value in bytes (`-col size=`).
    pub size: Spec,
    /// Share of the columns that are not null (`row-population-ratio=`).
    pub population_ratio: RatioSpec,
}

impl Default for RowShape {
    /// A key of 10 bytes and five columns of 34 bytes, none of them null.
    fn default() -> Self {
        Self {
            key_bytes: 10,
            columns: (0..5).map(|place| format!("C{place}")).collect(),
            size: Spec::Fixed { value: 34 },
            population_ratio: RatioSpec { distribution: Spec::Fixed { value: 1 }, divisor: 1.0 },
        }
    }
}

/// A row, in reused buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnRow {
    /// The partition key.
    pub key: Vec<u8>,
    /// All values, concatenated.
    pub values: Vec<u8>,
    /// The end of each column in `values`; `None` for null.
    pub ends: Vec<Option<usize>>,
}

impl ColumnRow {
    /// The value of each column; `None` for null.
    pub fn columns(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            end.map(|end| {
                let value = &self.values[start..end];
                start = end;
                value
            })
        })
    }
}

/// Generates rows from the seeds of partitions. Each client has one generator. Once the buffers have grown, no memory
/// is allocated.
#[derive(Clone, Debug)]
pub struct RowGenerator {
    key_bytes: usize,
    key_salt: i64,
    column_salts: Vec<i64>,
    identity: JavaRandom,
    size: Distribution,
    bytes: FasterRandom,
    ratio: Option<(Distribution, RatioSpec)>,
}

impl RowGenerator {
    /// A generator of rows with this shape.
    ///
    /// # Errors
    /// A distribution has no sampler.
    pub fn new(shape: &RowShape) -> Result<Self, String> {
        let ratio = &shape.population_ratio;
        let sampler = ratio.distribution.sampler()?;
        let is_full = ratio.share(sampler.min().min(sampler.max()) as f64) >= 1.0;
        Ok(Self {
            key_bytes: shape.key_bytes,
            key_salt: hash_salt("randomstrkey"),
            column_salts: shape.columns.iter().map(|name| hash_salt(&format!("randomstr{name}"))).collect(),
            identity: JavaRandom::new(0),
            size: shape.size.sampler()?,
            bytes: FasterRandom::new(0),
            ratio: if is_full { None } else { Some((sampler, ratio.clone())) },
        })
    }

    /// Replaces `row` with the row of the partition with this seed.
    #[inline]
    pub fn fill(&mut self, seed: i64, row: &mut ColumnRow) {
        row.key.clear();
        let identity = self.append_key(seed, &mut row.key);
        let share = self.population_share(seed);
        row.values.clear();
        row.ends.clear();
        let count = self.column_salts.len();
        for column in 0..count {
            // The tool binds null, and therefore writes a tombstone, if (column + 1) / columns exceeds the share.
            let end = if (column + 1) as f64 / count as f64 > share {
                None
            } else {
                self.append_column(column, identity, &mut row.values);
                Some(row.values.len())
            };
            row.ends.push(end);
        }
    }

    /// Appends the key of a partition to a buffer. Returns the seed of the partition's values (`idseed`).
    #[inline]
    pub fn append_key(&mut self, seed: i64, buffer: &mut Vec<u8>) -> i64 {
        let start = buffer.len();
        self.identity.seed(seed ^ self.key_salt);
        // The first draw is discarded: in the tool, it seeds the size, which is fixed for keys.
        self.draw_identity();
        while buffer.len() - start < self.key_bytes {
            let value = self.draw_identity();
            let digits: [u8; 16] = std::array::from_fn(|place| hex_digit(value >> (4 * place) & 15));
            let count = (self.key_bytes - (buffer.len() - start)).min(digits.len());
            buffer.extend_from_slice(&digits[..count]);
        }
        chain_bytes(&buffer[start..])
    }

    /// Appends a value to a buffer. `identity` is the result of [`Self::append_key`].
    #[inline]
    pub fn append_column(&mut self, column: usize, identity: i64, buffer: &mut Vec<u8>) {
        self.identity.seed(identity ^ self.column_salts[column]);
        let seed = self.draw_identity();
        self.size.seed(seed);
        let length = usize::try_from(self.size.next()).unwrap_or(0);
        self.bytes.seed(!seed);
        let end = buffer.len() + length;
        // Whole words are appended; the last one is truncated.
        buffer.reserve(length.next_multiple_of(8));
        while buffer.len() < end {
            buffer.extend_from_slice(&self.bytes.next_long().to_le_bytes());
        }
        buffer.truncate(end);
    }

    /// Share of the columns of a partition that are not null.
    ///
    /// For each operation, the tool draws the share from an unseeded generator, so reads of rows with nulls fail at
    /// random. Here, the share is a function of the partition. It equals the tool's share if the ratio is fixed.
    #[inline]
    fn population_share(&mut self, seed: i64) -> f64 {
        self.ratio.as_mut().map_or(1.0, |(sampler, ratio)| {
            sampler.seed(mix_seed(0, seed as u64, RATIO));
            ratio.share(sampler.next_double())
        })
    }

    #[inline]
    fn draw_identity(&mut self) -> i64 {
        let u = self.identity.next_double();
        (u * IDENTITY_MAX + (1.0 - u)) as i64
    }
}

/// The increments of counters (`add=`): one per column of an operation.
#[derive(Clone, Debug)]
pub struct Increments {
    distribution: Distribution,
    seed: u64,
}

impl Increments {
    /// Increments that depend only on `seed` and the operation. In the tool, they differ from run to run.
    ///
    /// # Errors
    /// The distribution has no sampler.
    pub fn new(spec: &Spec, seed: u64) -> Result<Self, String> {
        Ok(Self { distribution: spec.sampler()?, seed })
    }

    /// Fills `increments` for the operation at `index`, with one increment for each of `columns` columns.
    #[inline]
    pub fn fill(&mut self, index: u64, columns: usize, increments: &mut Vec<i64>) {
        self.distribution.seed(mix_seed(self.seed, index, INCREMENT));
        increments.clear();
        increments.extend((0..columns).map(|_| self.distribution.next()));
    }
}

/// Uses the digits `K` to `P` instead of the hexadecimal digits `A` to `F`, as the tool does.
#[inline]
fn hex_digit(nibble: i64) -> u8 {
    let digit = nibble as u8;
    if digit < 10 { b'0' + digit } else { b'A' + digit }
}

/// Calculates 31·h + byte over all signed bytes: the contribution of a key to the seed of its row.
#[inline]
fn chain_bytes(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |hash, &byte| hash.wrapping_mul(31).wrapping_add(i64::from(byte as i8)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{parse_ratio, parse_spec};

    const ROWS: &str = include_str!("../fixtures/rows.txt");
    /// The multiplier in 4.x for the default range of `revisit`.
    const MULTIPLIER: i64 = 10_000_000_000_000_001;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn row_of(generator: &mut RowGenerator, seed: i64) -> ColumnRow {
        let mut row = ColumnRow::default();
        generator.fill(seed, &mut row);
        row
    }

    fn key_of(number: i64) -> String {
        String::from_utf8(row_of(&mut RowGenerator::new(&RowShape::default()).unwrap(), number).key).unwrap()
    }

    #[test]
    fn rows_match_the_tool() {
        let mut generator = RowGenerator::new(&RowShape::default()).unwrap();
        let mut count = 0;
        for line in ROWS.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number: i64 = fields[1].parse().unwrap();
            let seed = if fields[0] == "4.x" { number.wrapping_mul(MULTIPLIER) } else { number };
            let mut key = Vec::new();
            let identity = generator.append_key(seed, &mut key);
            assert_eq!(
                (String::from_utf8(key).unwrap().as_str(), identity.to_string().as_str()),
                (fields[2], fields[3])
            );
            let row = row_of(&mut generator, seed);
            let values: Vec<String> = row.columns().map(|value| hex(value.unwrap())).collect();
            assert_eq!(values, fields[4..], "{} {number}", fields[0]);
            count += 1;
        }
        assert_eq!(count, 10);
    }

    #[test]
    fn long_keys_and_odd_sizes_match_the_tool() {
        let shape = RowShape {
            key_bytes: 20,
            columns: vec!["C0".to_owned(), "C1".to_owned()],
            size: parse_spec("uniform(10..40)").unwrap(),
            ..RowShape::default()
        };
        let mut generator = RowGenerator::new(&shape).unwrap();
        let row = row_of(&mut generator, 1);
        assert_eq!(row.key, b"0P37709P210000009LMK");
        assert_eq!(generator.append_key(1, &mut Vec::new()), -860_283_608_704_604_700);
        let values: Vec<String> = row.columns().map(|value| hex(value.unwrap())).collect();
        assert_eq!(
            values,
            ["4e6f18140a7305a064f3d220f278639dd2fb9d5a15c57ac939494432eff9", "3719056da6483bd217c08344"]
        );
    }

    /// Names outside ASCII, long keys, and every size distribution.
    #[test]
    fn odd_rows_match_the_tool() {
        let lines = include_str!("../fixtures/odd-rows.txt").lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let shape = RowShape {
                key_bytes: fields[0].parse().unwrap(),
                columns: fields[1].split(',').map(str::to_owned).collect(),
                size: parse_spec(fields[2]).unwrap(),
                ..RowShape::default()
            };
            let row = row_of(&mut RowGenerator::new(&shape).unwrap(), fields[3].parse().unwrap());
            let values: Vec<String> = row.columns().map(|value| hex(value.unwrap())).collect();
            assert_eq!((hex(&row.key).as_str(), values.join(" ").as_str()), (fields[4], fields[5]), "{line}");
            count += 1;
        }
        assert_eq!(count, 28);
    }

    /// The keys of two failed reads, from a public report of 2016 and from a ScyllaDB issue of 2015.
    #[test]
    fn published_keys_belong_to_their_numbers() {
        assert_eq!(key_of(760_110), "ON7MKPP361");
        assert_eq!(key_of(787_490), "33P0670P20");
        assert_eq!(key_of(1), "0P37709P21");
    }

    #[test]
    fn sparse_rows_have_nulls_at_their_end() {
        let share = |text: &str, columns: usize| {
            let shape = RowShape {
                columns: (0..columns).map(|place| format!("C{place}")).collect(),
                population_ratio: parse_ratio(text).unwrap().unwrap(),
                ..RowShape::default()
            };
            let row = row_of(&mut RowGenerator::new(&shape).unwrap(), 1);
            row.columns().map(|value| value.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(share("fixed(40)/100", 5), [true, true, false, false, false]);
        assert_eq!(share("fixed(1)/3", 3), [true, false, false]);
        assert_eq!(share("fixed(0)/1", 2), [false, false]);
    }

    #[test]
    fn sparse_rows_repeat() {
        let shape =
            RowShape { population_ratio: parse_ratio("uniform(0..100)/100").unwrap().unwrap(), ..RowShape::default() };
        let mut generator = RowGenerator::new(&shape).unwrap();
        let first: Vec<ColumnRow> = (0..50).map(|seed| row_of(&mut generator, seed)).collect();
        let second: Vec<ColumnRow> = (0..50).map(|seed| row_of(&mut generator, seed)).collect();
        assert_eq!(first, second);
        let sizes: std::collections::BTreeSet<usize> = first.iter().map(|row| row.values.len()).collect();
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [0, 34, 68, 102, 136, 170]);
    }

    #[test]
    fn increments_depend_on_the_operation() {
        let mut increments = Increments::new(&parse_spec("uniform(1..1000)").unwrap(), 7).unwrap();
        let mut draw = |index| {
            let mut values = Vec::new();
            increments.fill(index, 3, &mut values);
            values
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }

    #[test]
    fn a_million_keys_differ() {
        let mut generator = RowGenerator::new(&RowShape::default()).unwrap();
        let mut keys: Vec<[u8; 10]> = Vec::with_capacity(1_000_000);
        let mut key = Vec::new();
        for number in 1..=1_000_000_i64 {
            key.clear();
            generator.append_key(number.wrapping_mul(MULTIPLIER), &mut key);
            keys.push(key.as_slice().try_into().unwrap());
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 1_000_000);
    }
}
