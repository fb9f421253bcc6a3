//! CQL's types, and the encoding of their values as bytes (`native_protocol_v5.spec`, sections 4.2.5.2 and 6).

#![allow(missing_docs, reason = "CQL's names")]

use std::fmt;

use super::wire::{Body, Short};

/// Types that are nested more deeply are refused: no table has them, and a reader must not exhaust its stack.
const DEPTH_MAX: usize = 32;

/// The type of a column or marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type that Cassandra identifies by a Java class: custom types, and `vector` before protocol 5 supported it.
    Custom(String),
    Ascii,
    BigInt,
    Blob,
    Boolean,
    Counter,
    Decimal,
    Double,
    Float,
    Int,
    Timestamp,
    Uuid,
    Text,
    VarInt,
    TimeUuid,
    Inet,
    Date,
    Time,
    SmallInt,
    TinyInt,
    Duration,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Set(Box<Type>),
    /// A user-defined type: its name, and the names and types of its fields.
    Udt(String, Vec<(String, Type)>),
    Tuple(Vec<Type>),
    /// A fixed number of elements of the same type (Cassandra 5.0 and later).
    Vector(Box<Type>, usize),
}

/// The class name that Cassandra 5.0 uses for vectors. The element's class and the length follow in parentheses.
const VECTOR: &str = "org.apache.cassandra.db.marshal.VectorType(";

impl Type {
    /// Reads a type from an `[option]`.
    pub fn read(body: &mut Body<'_>, depth: usize) -> Result<Self, Short> {
        if depth > DEPTH_MAX {
            return Err(Short);
        }
        let inner = |body: &mut Body<'_>| Self::read(body, depth + 1);
        Ok(match body.short()? {
            0x0000 => {
                let class = body.text()?;
                Self::vector(&class).unwrap_or(Self::Custom(class))
            }
            0x0020 => Self::List(Box::new(inner(body)?)),
            0x0021 => Self::Map(Box::new(inner(body)?), Box::new(inner(body)?)),
            0x0022 => Self::Set(Box::new(inner(body)?)),
            0x0030 => {
                body.string()?;
                let name = body.text()?;
                let fields = (0..body.short()?).map(|_| Ok((body.text()?, inner(body)?)));
                Self::Udt(name, fields.collect::<Result<_, Short>>()?)
            }
            0x0031 => Self::Tuple((0..body.short()?).map(|_| inner(body)).collect::<Result<_, Short>>()?),
            code => Self::simple(code).ok_or(Short)?,
        })
    }

    fn simple(code: u16) -> Option<Self> {
        Some(match code {
            0x0001 => Self::Ascii,
            0x0002 => Self::BigInt,
            0x0003 => Self::Blob,
            0x0004 => Self::Boolean,
            0x0005 => Self::Counter,
            0x0006 => Self::Decimal,
            0x0007 => Self::Double,
            0x0008 => Self::Float,
            0x0009 => Self::Int,
            0x000B => Self::Timestamp,
            0x000C => Self::Uuid,
            // In protocols 1 and 2, 0x000A was the code of `text`.
            0x000A | 0x000D => Self::Text,
            0x000E => Self::VarInt,
            0x000F => Self::TimeUuid,
            0x0010 => Self::Inet,
            0x0011 => Self::Date,
            0x0012 => Self::Time,
            0x0013 => Self::SmallInt,
            0x0014 => Self::TinyInt,
            0x0015 => Self::Duration,
            _ => return None,
        })
    }

    /// Parses a vector of simple elements from its class name.
    fn vector(class: &str) -> Option<Self> {
        let (element, len) = class.strip_prefix(VECTOR)?.strip_suffix(')')?.rsplit_once(',')?;
        let element = match element.trim().rsplit('.').next()? {
            "FloatType" => Self::Float,
            "DoubleType" => Self::Double,
            "Int32Type" => Self::Int,
            "LongType" => Self::BigInt,
            "BooleanType" => Self::Boolean,
            "UUIDType" => Self::Uuid,
            "TimeUUIDType" => Self::TimeUuid,
            "TimestampType" => Self::Timestamp,
            "UTF8Type" => Self::Text,
            "AsciiType" => Self::Ascii,
            "BytesType" => Self::Blob,
            "ShortType" => Self::SmallInt,
            "ByteType" => Self::TinyInt,
            _ => return None,
        };
        Some(Self::Vector(Box::new(element), len.trim().parse().ok()?))
    }

    /// The length of a value of this type, if all values have the same length (`valueLengthIfFixed` in Cassandra's
    /// `AbstractType`).
    fn find_length(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int | Self::Float => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            Self::Vector(element, count) => element.find_length().map(|len| len * count),
            _ => None,
        }
    }
}

/// Formats the type in CQL notation. A user-defined type is written as a tuple of its fields, because its name alone
/// does not define them.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Custom(class) => write!(f, "'{class}'"),
            Self::List(element) => write!(f, "list<{element}>"),
            Self::Set(element) => write!(f, "set<{element}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Vector(element, count) => write!(f, "vector<{element}, {count}>"),
            Self::Tuple(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", fields.join(", "))
            }
            Self::Udt(_, fields) => {
                let fields: Vec<String> = fields.iter().map(|(_, kind)| kind.to_string()).collect();
                write!(f, "tuple<{}>", fields.join(", "))
            }
            simple => write!(f, "{}", format!("{simple:?}").to_ascii_lowercase()),
        }
    }
}

/// A value of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    /// The marker is not set (protocol 4 and later).
    Unset,
    Text(String),
    Blob(Vec<u8>),
    Boolean(bool),
    TinyInt(i8),
    SmallInt(i16),
    Int(i32),
    /// A `bigint`, a `counter`, a `timestamp` (ms since 1970) or a `time` (ns since midnight).
    BigInt(i64),
    /// Days since 1970.
    Date(i32),
    Float(f32),
    Double(f64),
    /// An integer in two's complement, most significant byte first.
    VarInt(Vec<u8>),
    /// The digits in the format of a `varint`, and the number of digits after the decimal point.
    Decimal(Vec<u8>, i32),
    Uuid(u128),
    Inet(std::net::IpAddr),
    /// Months, days and nanoseconds.
    Duration(i64, i64, i64),
    /// A list, a set, a tuple, a vector, or the fields of a user-defined type in order.
    Sequence(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

/// The value does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch;

impl Value {
    /// Appends the value as a `[value]`: its length, followed by its bytes.
    pub fn put(&self, kind: &Type, out: &mut Vec<u8>) -> Result<(), Mismatch> {
        match self {
            Self::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Self::Unset => out.extend_from_slice(&(-2i32).to_be_bytes()),
            _ => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                self.put_bare(kind, out)?;
                let len = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&len.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Appends the bytes of the value, without their length.
    fn put_bare(&self, kind: &Type, out: &mut Vec<u8>) -> Result<(), Mismatch> {
        match (self, kind) {
            (Self::Text(text), Type::Text | Type::Ascii) => out.extend_from_slice(text.as_bytes()),
            (Self::Blob(bytes), Type::Blob | Type::Custom(_)) | (Self::VarInt(bytes), Type::VarInt) => {
                out.extend_from_slice(bytes);
            }
            (Self::Boolean(value), Type::Boolean) => out.push(u8::from(*value)),
            (Self::TinyInt(value), Type::TinyInt) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::SmallInt(value), Type::SmallInt) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::Int(value), Type::Int) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::BigInt(value), Type::BigInt | Type::Counter | Type::Timestamp | Type::Time) => {
                out.extend_from_slice(&value.to_be_bytes());
            }
            // The epoch is encoded as the middle of the range.
            (Self::Date(days), Type::Date) => out.extend_from_slice(&(*days as u32 ^ (1 << 31)).to_be_bytes()),
            (Self::Float(value), Type::Float) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::Double(value), Type::Double) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::Decimal(digits, scale), Type::Decimal) => {
                out.extend_from_slice(&scale.to_be_bytes());
                out.extend_from_slice(digits);
            }
            (Self::Uuid(value), Type::Uuid | Type::TimeUuid) => out.extend_from_slice(&value.to_be_bytes()),
            (Self::Inet(std::net::IpAddr::V4(address)), Type::Inet) => out.extend_from_slice(&address.octets()),
            (Self::Inet(std::net::IpAddr::V6(address)), Type::Inet) => out.extend_from_slice(&address.octets()),
            (Self::Duration(months, days, ns), Type::Duration) => {
                for part in [months, days, ns] {
                    put_vint(*part, out);
                }
            }
            (Self::Sequence(values), Type::List(element) | Type::Set(element)) => {
                out.extend_from_slice(&(values.len() as u32).to_be_bytes());
                values.iter().try_for_each(|value| value.put(element, out))?;
            }
            (Self::Map(pairs), Type::Map(key, element)) => {
                out.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
                pairs.iter().try_for_each(|(name, value)| name.put(key, out).and_then(|()| value.put(element, out)))?;
            }
            (Self::Sequence(values), Type::Tuple(kinds)) if values.len() <= kinds.len() => {
                values.iter().zip(kinds).try_for_each(|(value, kind)| value.put(kind, out))?;
            }
            (Self::Sequence(values), Type::Udt(_, fields)) if values.len() <= fields.len() => {
                values.iter().zip(fields).try_for_each(|(value, (_, kind))| value.put(kind, out))?;
            }
            (Self::Sequence(values), Type::Vector(element, len)) if values.len() == *len => {
                for value in values {
                    if element.find_length().is_some() {
                        value.put_bare(element, out)?;
                    } else {
                        let mut bytes = Vec::new();
                        value.put_bare(element, &mut bytes)?;
                        put_unsigned_vint(bytes.len() as u64, out);
                        out.extend_from_slice(&bytes);
                    }
                }
            }
            _ => return Err(Mismatch),
        }
        Ok(())
    }

    /// Reads a value from a `[bytes]` in a result.
    pub fn read(kind: &Type, body: &mut Body<'_>) -> Result<Self, Short> {
        body.bytes()?.map_or(Ok(Self::Null), |bytes| Self::read_bare(kind, bytes))
    }

    /// Reads a value from its bytes.
    pub fn read_bare(kind: &Type, bytes: &[u8]) -> Result<Self, Short> {
        // Cassandra accepts an empty value for most types, so it is read as null.
        if bytes.is_empty() && !matches!(kind, Type::Text | Type::Ascii | Type::Blob | Type::Custom(_)) {
            return Ok(Self::Null);
        }
        let mut body = Body(bytes);
        let value = match kind {
            Type::Text | Type::Ascii => return Ok(Self::Text(String::from_utf8_lossy(bytes).into_owned())),
            Type::Blob | Type::Custom(_) => return Ok(Self::Blob(bytes.to_vec())),
            Type::VarInt => return Ok(Self::VarInt(bytes.to_vec())),
            Type::Decimal => {
                let scale = body.int()?;
                return Ok(Self::Decimal(body.0.to_vec(), scale));
            }
            Type::Boolean => Self::Boolean(body.array::<1>()?[0] != 0),
            Type::TinyInt => Self::TinyInt(i8::from_be_bytes(body.array()?)),
            Type::SmallInt => Self::SmallInt(i16::from_be_bytes(body.array()?)),
            Type::Int => Self::Int(body.int()?),
            Type::BigInt | Type::Counter | Type::Timestamp | Type::Time => {
                Self::BigInt(i64::from_be_bytes(body.array()?))
            }
            Type::Date => Self::Date((u32::from_be_bytes(body.array()?) ^ (1 << 31)) as i32),
            Type::Float => Self::Float(f32::from_be_bytes(body.array()?)),
            Type::Double => Self::Double(f64::from_be_bytes(body.array()?)),
            Type::Uuid | Type::TimeUuid => Self::Uuid(u128::from_be_bytes(body.array()?)),
            Type::Inet if bytes.len() == 4 => Self::Inet(body.array::<4>()?.into()),
            Type::Inet => Self::Inet(body.array::<16>()?.into()),
            Type::Duration => Self::Duration(read_vint(&mut body)?, read_vint(&mut body)?, read_vint(&mut body)?),
            Type::List(element) | Type::Set(element) => {
                let count = body.int()?;
                Self::Sequence((0..count).map(|_| Self::read(element, &mut body)).collect::<Result<_, Short>>()?)
            }
            Type::Map(key, element) => {
                let count = body.int()?;
                let pairs = (0..count).map(|_| Ok((Self::read(key, &mut body)?, Self::read(element, &mut body)?)));
                Self::Map(pairs.collect::<Result<_, Short>>()?)
            }
            // A value that was written before a field was added is shorter.
            Type::Tuple(kinds) => Self::read_fields(kinds.iter(), &mut body)?,
            Type::Udt(_, fields) => Self::read_fields(fields.iter().map(|(_, kind)| kind), &mut body)?,
            Type::Vector(element, count) => {
                let values = (0..*count).map(|_| {
                    let len = element.find_length().map_or_else(|| read_unsigned_vint(&mut body), |len| Ok(len as u64));
                    let len = usize::try_from(len?).map_err(|_| Short)?;
                    Self::read_bare(element, body.take(len)?)
                });
                Self::Sequence(values.collect::<Result<_, Short>>()?)
            }
        };
        if body.0.is_empty() { Ok(value) } else { Err(Short) }
    }

    fn read_fields<'a>(kinds: impl Iterator<Item = &'a Type>, body: &mut Body<'_>) -> Result<Self, Short> {
        let mut values = Vec::new();
        for kind in kinds {
            values.push(if body.0.is_empty() { Self::Null } else { Self::read(kind, body)? });
        }
        Ok(Self::Sequence(values))
    }
}

/// Appends a `[vint]`: the zig-zag encoding of the value, written by `put_unsigned_vint`.
fn put_vint(value: i64, out: &mut Vec<u8>) {
    put_unsigned_vint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Appends an `[unsigned vint]`: the number of leading ones in the first byte is the number of bytes that follow.
fn put_unsigned_vint(value: u64, out: &mut Vec<u8>) {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    // Up to 8 bytes contain 7 bits per byte; a ninth byte adds 8 bits.
    let extra = (bits - 1) / 7;
    if extra >= 8 {
        out.push(0xFF);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    let bytes = value.to_be_bytes();
    let first = out.len();
    out.extend_from_slice(&bytes[7 - extra..]);
    out[first] |= !(0xFFu8 >> extra);
}

fn read_unsigned_vint(body: &mut Body<'_>) -> Result<u64, Short> {
    let [first] = body.array()?;
    let extra = first.leading_ones() as usize;
    let own = if extra >= 8 { 0 } else { u64::from(first & (0xFF >> extra)) };
    Ok(body.take(extra)?.iter().fold(own, |value, byte| value << 8 | u64::from(*byte)))
}

fn read_vint(body: &mut Body<'_>) -> Result<i64, Short> {
    let value = read_unsigned_vint(body)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Appends the routing key for several partition columns: each column with its length and a zero byte
/// (`CompositeType`). For a single column, the routing key is the column's bytes.
pub fn put_routing_key<'a>(columns: impl ExactSizeIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    out.clear();
    if columns.len() == 1 {
        columns.for_each(|bytes| out.extend_from_slice(bytes));
        return;
    }
    for bytes in columns {
        out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        out.extend_from_slice(bytes);
        out.push(0);
    }
}

#[cfg(test)]
mod tests;
