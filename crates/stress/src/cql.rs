//! CQL's types with the server's names, and the operations on their values.

use std::cmp::Ordering;
use std::fmt;

/// Maximum depth of nested types; deeper types are refused.
const DEPTH_MAX: usize = 16;

/// A type whose values can be generated. A user-defined type is represented as a tuple, because both have the same
/// encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "CQL's names")]
pub enum CqlType {
    Ascii,
    BigInt,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Float,
    Inet,
    Int,
    SmallInt,
    Text,
    Time,
    Timestamp,
    TimeUuid,
    TinyInt,
    Uuid,
    VarInt,
    List(Box<CqlType>),
    Set(Box<CqlType>),
    Map(Box<CqlType>, Box<CqlType>),
    Tuple(Vec<CqlType>),
}

impl CqlType {
    /// Parses a type, such as `map<text, frozen<list<int>>>`. `frozen` is dropped, because it does not change values.
    ///
    /// # Errors
    /// Values of this type cannot be generated.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_at(text.trim(), 0).ok_or_else(|| format!("values of the type {text} cannot be generated"))
    }

    fn parse_at(text: &str, depth: usize) -> Option<Self> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some((name, inner)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
            let parts = split_arguments(inner)?;
            let mut types = parts.iter().map(|part| Self::parse_at(part, depth + 1));
            let mut next = || types.next().flatten().map(Box::new);
            return match (name.trim(), parts.len()) {
                ("frozen", 1) => next().map(|inner| *inner),
                ("list", 1) => next().map(Self::List),
                ("set", 1) => next().map(Self::Set),
                ("map", 2) => Some(Self::Map(next()?, next()?)),
                ("tuple", 1..) => types.collect::<Option<_>>().map(Self::Tuple),
                _ => None,
            };
        }
        Some(match text.to_ascii_lowercase().as_str() {
            "ascii" => Self::Ascii,
            "bigint" => Self::BigInt,
            "blob" => Self::Blob,
            "boolean" => Self::Boolean,
            "counter" => Self::Counter,
            "date" => Self::Date,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "float" => Self::Float,
            "inet" => Self::Inet,
            "int" => Self::Int,
            "smallint" => Self::SmallInt,
            "text" | "varchar" => Self::Text,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "timeuuid" => Self::TimeUuid,
            "tinyint" => Self::TinyInt,
            "uuid" => Self::Uuid,
            "varint" => Self::VarInt,
            _ => return None,
        })
    }

    /// Whether the values are lists, sets or maps.
    pub const fn is_collection(&self) -> bool {
        matches!(self, Self::List(_) | Self::Set(_) | Self::Map(..))
    }

    /// Compares two values in the server's order.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            // The bytes are in two's complement, so the numbers are compared, not the bytes.
            Self::BigInt | Self::Counter | Self::Int | Self::SmallInt | Self::TinyInt | Self::Timestamp => {
                read_signed(a).cmp(&read_signed(b))
            }
            Self::VarInt => read_big(a).cmp(&read_big(b)),
            // Generated decimals have no digits after the decimal point.
            Self::Decimal => read_big(a.get(4..).unwrap_or_default()).cmp(&read_big(b.get(4..).unwrap_or_default())),
            Self::Double => read_double(a).total_cmp(&read_double(b)),
            Self::Float => read_float(a).total_cmp(&read_float(b)),
            Self::TimeUuid => {
                let time = |bytes: &[u8]| {
                    let bytes: [u8; 8] = bytes.get(..8).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
                    let most = u64::from_be_bytes(bytes);
                    (most & 0xFFF) << 48 | (most >> 16 & 0xFFFF) << 32 | most >> 32
                };
                let rest = |bytes: &[u8]| bytes.iter().skip(8).map(|byte| *byte as i8).collect::<Vec<_>>();
                time(a).cmp(&time(b)).then_with(|| rest(a).cmp(&rest(b)))
            }
            Self::Uuid => {
                let version = |bytes: &[u8]| bytes.get(6).map_or(0, |byte| byte >> 4);
                let by_version = version(a).cmp(&version(b));
                by_version.then_with(|| if version(a) == 1 { Self::TimeUuid.compare(a, b) } else { a.cmp(b) })
            }
            Self::List(element) | Self::Set(element) => compare_parts(a, b, 4, |_| element),
            Self::Map(key, value) => compare_parts(a, b, 4, |at| if at % 2 == 0 { key } else { value }),
            Self::Tuple(fields) => compare_parts(a, b, 0, |at| &fields[at.min(fields.len() - 1)]),
            Self::Ascii | Self::Blob | Self::Boolean | Self::Date | Self::Inet | Self::Text | Self::Time => a.cmp(b),
        }
    }

    /// Combines a seed with a value: 31 · seed + value.
    ///
    /// Source: `PartitionIterator.seed`. Numbers are added as longs, UUIDs as the XOR of their halves, and all other
    /// types byte by byte.
    #[inline]
    pub fn chain(&self, bytes: &[u8], seed: i64) -> i64 {
        let add = |seed: i64, value: i64| seed.wrapping_mul(31).wrapping_add(value);
        match self {
            Self::BigInt | Self::Counter | Self::Int | Self::SmallInt | Self::TinyInt | Self::Time => {
                add(seed, read_signed(bytes))
            }
            Self::Date => add(seed, i64::from((read_signed(bytes) as u32 ^ 1 << 31) as i32)),
            Self::VarInt => add(seed, read_signed(bytes)),
            Self::Decimal => add(seed, read_signed(bytes.get(4..).unwrap_or_default())),
            Self::Double => add(seed, read_double(bytes) as i64),
            Self::Float => add(seed, read_float(bytes) as i64),
            Self::Uuid | Self::TimeUuid => {
                let (most, least) = bytes.split_at(8.min(bytes.len()));
                add(seed, read_signed(most) ^ read_signed(least))
            }
            _ => bytes.iter().fold(seed, |seed, &byte| add(seed, i64::from(byte as i8))),
        }
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(element) => write!(f, "list<{element}>"),
            Self::Set(element) => write!(f, "set<{element}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Tuple(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", fields.join(", "))
            }
            simple => write!(f, "{}", format!("{simple:?}").to_ascii_lowercase()),
        }
    }
}

/// Reads a number in two's complement. If it has more than 8 bytes, only the last 8 bytes are used.
#[inline]
fn read_signed(bytes: &[u8]) -> i64 {
    let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(start, |value, &byte| value << 8 | i64::from(byte))
}

/// Reads a `varint` of at most 16 bytes.
fn read_big(bytes: &[u8]) -> i128 {
    let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(start, |value, &byte| value << 8 | i128::from(byte))
}

fn read_double(bytes: &[u8]) -> f64 {
    bytes.try_into().map_or(0.0, f64::from_be_bytes)
}

fn read_float(bytes: &[u8]) -> f32 {
    bytes.try_into().map_or(0.0, f32::from_be_bytes)
}

/// Compares the parts of two values, each preceded by its length, after `skip` bytes. If one value begins with all
/// parts of the other, the value with fewer parts comes first.
fn compare_parts<'a>(a: &[u8], b: &[u8], skip: usize, type_at: impl Fn(usize) -> &'a CqlType) -> Ordering {
    let (mut a, mut b) = (a.get(skip..).unwrap_or_default(), b.get(skip..).unwrap_or_default());
    for at in 0.. {
        match (take_part(&mut a), take_part(&mut b)) {
            (Some(first), Some(second)) => match type_at(at).compare(first, second) {
                Ordering::Equal => {}
                other => return other,
            },
            (first, second) => return first.is_some().cmp(&second.is_some()),
        }
    }
    Ordering::Equal
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0).min(rest.len());
    let (part, rest) = rest.split_at(length);
    *bytes = rest;
    Some(part)
}

/// Splits at commas outside brackets.
fn split_arguments(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    parts.push(text[start..].trim());
    Some(parts)
}

/// An identifier as written in a statement: quoted, as in the tool, unless it has only lower-case letters, digits and
/// `_`.
pub fn quote(name: &str) -> String {
    let is_plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_survive_their_text() {
        for text in ["int", "list<text>", "map<text, tuple<int, set<uuid>>>", "timeuuid"] {
            assert_eq!(CqlType::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            CqlType::parse("frozen<map<varchar,frozen<list<int>>>>").unwrap().to_string(),
            "map<text, list<int>>"
        );
        for text in ["duration", "vector<float, 3>", "list<>", "map<int>", "int>", "<", &"list<".repeat(50)] {
            assert!(CqlType::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_ordered_as_the_server_orders_them() {
        let less = |kind: &str, a: &[u8], b: &[u8]| CqlType::parse(kind).unwrap().compare(a, b) == Ordering::Less;
        assert!(less("int", &[0xFF; 4], &[0, 0, 0, 1]));
        assert!(less("varint", &[0xFE], &[0x7F, 0]));
        assert!(less("double", &(-2.0_f64).to_be_bytes(), &1.0_f64.to_be_bytes()));
        assert!(less("text", b"a", b"ab"));
        assert!(less("date", &[0x7F, 0, 0, 0], &[0x80, 0, 0, 0]));
        assert!(less("list<int>", &[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1], &[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2]));
    }

    #[test]
    fn names_are_quoted_where_needed() {
        assert_eq!((quote("ab_1"), quote("Ab"), quote("a\"b")), ("ab_1".into(), "\"Ab\"".into(), "\"a\"\"b\"".into()));
    }
}
