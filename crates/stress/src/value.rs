//! Generates values of CQL types from seeds. For types that the tool supports, the bytes equal the tool's, except that
//! the tool does not seed the sizes of collections.
//!
//! Sources: Cassandra's `Generator.java` and its subclasses in `stress/generate/values`. The tool refuses maps, tuples,
//! user-defined types, and collections within collections. Here, these types follow the tool's rule for lists: each
//! part is seeded with 31 · seed. Elements and keys have the name of the column. The values of a map have this name
//! followed by `.value`, and each field has this name followed by `.` and its index.

use crate::compat::Compat;
use crate::cql::CqlType;
use crate::distribution::{Distribution, Spec};
use crate::random::{FasterRandom, hash_salt};

/// The salt of a column is the hash of this text followed by the name of the column.
const SALT: &str = "seed for stress";
/// 50 years in milliseconds: the population of `timestamp`.
const TIMESTAMP_MAX: i64 = 1_576_800_000_000;
const IDENTITY_MAX: i64 = 100_000_000_000;
/// Time from the start of the Gregorian calendar to 1970, ms.
const GREGORIAN_MS: i64 = 12_219_292_800_000;

/// The distributions of a column. `None` represents the tool's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSpecs {
    /// Length of a text in characters, of a blob in bytes, or of a collection in elements.
    pub size: Option<Spec>,
    /// The numbers from which values are generated.
    pub population: Option<Spec>,
    /// Number of values of a clustering column for each value of the preceding column.
    pub cluster: Option<Spec>,
}

/// Generates the values of a column.
#[derive(Clone, Debug)]
pub struct ValueGenerator {
    kind: CqlType,
    salt: i64,
    identity: Distribution,
    size: Distribution,
    cluster: Distribution,
    bytes: FasterRandom,
    /// The generators of the parts: elements, keys and values, or fields.
    parts: Vec<ValueGenerator>,
    /// Whether booleans are always true, as in 3.x.
    is_always_true: bool,
    /// Whether the two halves of a UUID differ, as they did before CASSANDRA-12729.
    has_two_halves: bool,
    /// Positions of the elements while a set or a map is being sorted.
    spans: Vec<(u32, u32, u32)>,
    scratch: Vec<u8>,
}

impl ValueGenerator {
    /// Creates a generator for a column's values.
    ///
    /// # Errors
    /// A distribution has no sampler.
    pub fn new(name: &str, kind: &CqlType, specs: &ValueSpecs, compat: Compat) -> Result<Self, String> {
        let uniform = |max| Spec::Uniform { min: 1, max };
        let population = match kind {
            CqlType::Timestamp | CqlType::TimeUuid => uniform(TIMESTAMP_MAX),
            _ => uniform(IDENTITY_MAX),
        };
        let sampler = |spec: &Option<Spec>, default: Spec| spec.as_ref().unwrap_or(&default).sampler();
        let part = |suffix: &str, kind: &CqlType| {
            // The elements of a list have the list's name and settings. As in cassandra-stress, the size of the list
            // also applies to its elements.
            Self::new(&format!("{name}{suffix}"), kind, specs, compat)
        };
        let parts = match kind {
            CqlType::List(element) | CqlType::Set(element) => vec![part("", element)?],
            CqlType::Map(key, value) => vec![part("", key)?, part(".value", value)?],
            CqlType::Tuple(fields) => {
                fields.iter().enumerate().map(|(at, kind)| part(&format!(".{at}"), kind)).collect::<Result<_, _>>()?
            }
            _ => Vec::new(),
        };
        Ok(Self {
            kind: kind.clone(),
            salt: hash_salt(&format!("{SALT}{name}")),
            identity: sampler(&specs.population, population)?,
            size: sampler(&specs.size, Spec::Uniform { min: 4, max: 8 })?,
            cluster: sampler(&specs.cluster, Spec::Fixed { value: 1 })?,
            bytes: FasterRandom::new(0),
            parts,
            is_always_true: !compat.multiplies_seeds(),
            has_two_halves: *kind == CqlType::Uuid && compat == Compat::V3_0,
            spans: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// The type of the values.
    pub const fn kind(&self) -> &CqlType {
        &self.kind
    }

    /// Number of values of a clustering column for each value of the preceding column.
    pub const fn cluster(&self) -> &Distribution {
        &self.cluster
    }

    /// Makes the following values depend on `seed` alone.
    #[inline]
    pub fn seed(&mut self, seed: i64) {
        self.identity.seed(seed ^ self.salt);
        if !self.parts.is_empty() {
            // The tool does not seed the size of a collection. Here it is seeded; a fixed size equals the tool's.
            self.size.seed(seed ^ self.salt.rotate_left(32));
            for part in &mut self.parts {
                part.seed(seed.wrapping_mul(31));
            }
        }
    }

    /// Seeds a clustering column. Returns its number of values.
    pub fn seed_level(&mut self, seed: i64) -> u64 {
        self.seed(seed);
        self.cluster.seed(seed ^ !self.salt);
        u64::try_from(self.cluster.next()).unwrap_or(0)
    }

    /// Skips values.
    pub fn skip(&mut self, count: u64) {
        if self.parts.is_empty() {
            self.identity.skip(if self.has_two_halves { count.wrapping_mul(2) } else { count });
            return;
        }
        let mut value = Vec::new();
        for _ in 0..count {
            value.clear();
            self.append(&mut value);
        }
    }

    /// Combines a seed with a value; see [`CqlType::chain`].
    #[inline]
    pub fn chain(&self, value: &[u8], seed: i64) -> i64 {
        self.kind.chain(value, seed)
    }

    /// Appends the bytes of the next value.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        match self.kind {
            CqlType::Text | CqlType::Ascii => self.append_bytes(out, |byte| (byte & 127).wrapping_add(32) & 127),
            CqlType::Blob => self.append_bytes(out, |byte| byte),
            CqlType::BigInt | CqlType::Counter | CqlType::Time | CqlType::Timestamp => {
                out.extend_from_slice(&self.identity.next().to_be_bytes());
            }
            // In the tool, an inet is an IPv4 address that consists of the low 32 bits of the number.
            CqlType::Int | CqlType::Inet => out.extend_from_slice(&(self.identity.next() as i32).to_be_bytes()),
            CqlType::SmallInt => out.extend_from_slice(&(self.identity.next() as i16).to_be_bytes()),
            CqlType::TinyInt => out.push(self.identity.next() as u8),
            // Days since 1970. The protocol counts from 2³¹ days before 1970.
            CqlType::Date => out.extend_from_slice(&(self.identity.next() as u32 ^ 1 << 31).to_be_bytes()),
            CqlType::Boolean => {
                let value = self.identity.next();
                out.push(u8::from(self.is_always_true || value % 2 == 0));
            }
            CqlType::VarInt => append_varint(self.identity.next(), out),
            CqlType::Decimal => {
                out.extend_from_slice(&[0; 4]);
                append_varint(self.identity.next(), out);
            }
            CqlType::Double => out.extend_from_slice(&self.identity.next_double().to_be_bytes()),
            CqlType::Float => out.extend_from_slice(&(self.identity.next_double() as f32).to_be_bytes()),
            CqlType::Uuid => {
                let half = self.identity.next();
                out.extend_from_slice(&half.to_be_bytes());
                let other = if self.has_two_halves { self.identity.next() } else { half };
                out.extend_from_slice(&other.to_be_bytes());
            }
            CqlType::TimeUuid => {
                let ticks = self.identity.next().wrapping_add(GREGORIAN_MS).wrapping_mul(10_000) as u64;
                let most = ticks << 32 | (ticks >> 16 & 0xFFFF_0000) | ticks >> 48 | 0x1000;
                out.extend_from_slice(&most.to_be_bytes());
                out.extend_from_slice(&self.salt.to_be_bytes());
            }
            CqlType::List(_) => {
                let count = self.draw_size();
                out.extend_from_slice(&(count as u32).to_be_bytes());
                for _ in 0..count {
                    append_sized(&mut self.parts[0], out);
                }
            }
            CqlType::Set(_) | CqlType::Map(..) => self.append_sorted(out),
            CqlType::Tuple(_) => {
                for part in &mut self.parts {
                    append_sized(part, out);
                }
            }
        }
    }

    fn draw_size(&mut self) -> usize {
        usize::try_from(self.size.next()).unwrap_or(0)
    }

    #[inline]
    fn append_bytes(&mut self, out: &mut Vec<u8>, map: impl Fn(u8) -> u8) {
        let seed = self.identity.next();
        self.size.seed(seed);
        let length = self.draw_size();
        self.bytes.seed(!seed);
        let (start, end) = (out.len(), out.len() + length);
        out.reserve(length.next_multiple_of(8));
        while out.len() < end {
            out.extend_from_slice(&self.bytes.next_long().to_le_bytes());
        }
        out.truncate(end);
        for byte in &mut out[start..] {
            *byte = map(*byte);
        }
    }

    /// Appends a set or a map in the server's order and without duplicates, so that rows read can be compared byte by
    /// byte. If keys are equal, the first value is kept.
    fn append_sorted(&mut self, out: &mut Vec<u8>) {
        let count = self.draw_size();
        let Self { parts, spans, scratch, .. } = self;
        spans.clear();
        scratch.clear();
        for _ in 0..count {
            let start = scratch.len() as u32;
            append_sized(&mut parts[0], scratch);
            let end = scratch.len() as u32;
            if let Some(value) = parts.get_mut(1) {
                append_sized(value, scratch);
            }
            spans.push((start, end, scratch.len() as u32));
        }
        let key = |span: &(u32, u32, u32)| &scratch[span.0 as usize + 4..span.1 as usize];
        let kind = parts[0].kind();
        spans.sort_by(|a, b| kind.compare(key(a), key(b)));
        spans.dedup_by(|later, first| key(later) == key(first));
        out.extend_from_slice(&(spans.len() as u32).to_be_bytes());
        for (start, _, end) in &*spans {
            out.extend_from_slice(&scratch[*start as usize..*end as usize]);
        }
    }
}

/// Appends a value preceded by its length.
#[inline]
fn append_sized(generator: &mut ValueGenerator, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    generator.append(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends an integer in two's complement, with the minimum number of bytes.
#[inline]
fn append_varint(value: i64, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xFF } else { 0 };
    let spare =
        bytes[..7].iter().zip(&bytes[1..]).take_while(|(byte, next)| **byte == sign && (*next ^ sign) < 0x80).count();
    out.extend_from_slice(&bytes[spare..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::parse_spec;

    fn generate(kind: &str, specs: &ValueSpecs, seed: i64) -> Vec<u8> {
        let mut generator = ValueGenerator::new("c", &CqlType::parse(kind).unwrap(), specs, Compat::V4).unwrap();
        generator.seed(seed);
        let mut value = Vec::new();
        generator.append(&mut value);
        value
    }

    #[test]
    fn whole_numbers_have_the_shortest_form() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[255]),
            (-128, &[128]),
            (-129, &[255, 127]),
            (i64::MAX, &i64::MAX.to_be_bytes()),
        ] {
            let mut out = Vec::new();
            append_varint(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
    }

    /// One of the keys that version 3.3 wrote for the numbers 1 to 20.
    #[test]
    fn old_uuids_have_different_halves() {
        let mut generator =
            ValueGenerator::new("sensor", &CqlType::Uuid, &ValueSpecs::default(), Compat::V3_0).unwrap();
        let keys: Vec<u128> = (1..=20)
            .map(|seed| {
                let mut value = Vec::new();
                generator.seed(seed);
                generator.append(&mut value);
                u128::from_be_bytes(value.try_into().unwrap())
            })
            .collect();
        assert!(keys.contains(&0x0000_0010_4fdf_b31d_0000_0001_6f42_9ab0));
    }

    #[test]
    fn nested_values_repeat_with_their_seed() {
        let specs = ValueSpecs { size: Some(parse_spec("uniform(1..6)").unwrap()), ..ValueSpecs::default() };
        for kind in ["map<text, frozen<list<int>>>", "tuple<int, map<uuid, text>>", "list<frozen<set<date>>>"] {
            assert_eq!(generate(kind, &specs, 5), generate(kind, &specs, 5));
            assert_ne!(generate(kind, &specs, 5), generate(kind, &specs, 6), "{kind}");
        }
    }

    #[test]
    fn skipped_values_are_those_of_the_sequence() {
        for (kind, population) in
            [("text", None), ("int", Some("gaussian(1..1000)")), ("list<int>", None), ("uuid", None)]
        {
            let population = population.map(|text| parse_spec(text).unwrap());
            let specs = ValueSpecs { population, ..ValueSpecs::default() };
            let new = || {
                let kind = CqlType::parse(kind).unwrap();
                let mut generator = ValueGenerator::new("c", &kind, &specs, Compat::V4).unwrap();
                generator.seed(9);
                generator
            };
            let (mut all, mut skipping) = (new(), new());
            let mut values = Vec::new();
            for _ in 0..1_000 {
                values.clear();
                all.append(&mut values);
            }
            skipping.skip(999);
            let mut last = Vec::new();
            skipping.append(&mut last);
            assert_eq!(values, last, "{kind}");
        }
    }
}
