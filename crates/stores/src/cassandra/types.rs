//! CQL's types (`native_protocol_v5.spec`, section 4.2.5.2).

#![allow(missing_docs, reason = "CQL's names")]

use std::fmt;

use super::wire::{Body, Short};

/// Nested types beyond this depth are refused: no table has them, and a reader must not exhaust its stack.
const DEPTH_MAX: usize = 32;

/// The type of a column or of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type that Cassandra identifies by a Java class: `vector` before protocol 5 supported it, and custom types.
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
    /// A fixed number of elements of one type: Cassandra 5.0.
    Vector(Box<Type>, usize),
}

/// The class by which Cassandra 5.0 names its vectors, with the element's class and the length in parentheses.
const VECTOR: &str = "org.apache.cassandra.db.marshal.VectorType(";

impl Type {
    /// Reads an `[option]`.
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
            // 0x000A was the code of `text` in protocols 1 and 2.
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

    /// A vector of simple elements, from the class that names it.
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

/// The notation of CQL. A user-defined type, whose name alone does not define its fields, is written as a tuple of
/// them.
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

/// The routing key of several partition columns: each with its length and a zero byte (`CompositeType`). The key of one column is
/// its bytes.
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
