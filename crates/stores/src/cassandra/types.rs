//! CQL's types (`native_protocol_v5.spec`, section 4.2.5.2).

#![allow(missing_docs, reason = "CQL's names")]

use std::fmt;

use super::wire::{Body, Short};

/// Types that are nested more deeply than this are refused: no table has them, and a reader must not exhaust its stack.
const DEPTH_MAX: usize = 32;

/// The type of a column or marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type that Cassandra identifies by a Java class: a custom type, or a vector whose elements are not of a simple
    /// type.
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
