//! Values that are sent to or received from PostgreSQL, without additional copies.

use std::error::Error;

use loadstone_load::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

/// The first byte of a `jsonb` in binary form.
const JSONB_VERSION: u8 = 1;

/// A parameter of a statement. The server validates strings, because it knows its encoding.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// A `varchar` or `text`.
    Text(&'a [u8]),
    /// A `jsonb`.
    Json(&'a [u8]),
    /// A `bigint`.
    Count(i64),
}

impl ToSql for Param<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => out.extend_from_slice(text),
            Self::Json(text) => {
                out.extend_from_slice(&[JSONB_VERSION]);
                out.extend_from_slice(text);
            }
            Self::Count(count) => out.extend_from_slice(&count.to_be_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The text of a column, in the buffer in which it was received.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes))
    }

    fn accepts(ty: &Type) -> bool {
        let own = matches!(ty.kind(), Kind::Enum(_)) || ty.name() == "citext";
        [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::BYTEA].contains(ty) || own
    }
}

/// Whether the binary form of a type is text. The form of user-defined types is unknown, so they are accepted.
pub fn takes_text(ty: &Type) -> bool {
    let texts =
        [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::BYTEA, Type::JSON, Type::XML, Type::UNKNOWN];
    texts.contains(ty) || Type::from_oid(ty.oid()).is_none()
}

/// The parameters of a statement on a record: the record's key and the values of its fields.
#[derive(Debug)]
pub struct Params<'a, V> {
    key: Option<&'a [u8]>,
    key_first: bool,
    values: V,
    left: usize,
}

/// The key and the values. The key comes first for an insert and last for an update.
pub fn params<'a>(key: &'a [u8], row: &'a Row, key_first: bool) -> Params<'a, impl Iterator<Item = &'a [u8]>> {
    let values = row.fields().flatten().map(|(_, value)| value);
    Params { key: Some(key), key_first, values, left: 1 + row.fields().count() }
}

impl<'a, V: Iterator<Item = &'a [u8]>> Iterator for Params<'a, V> {
    type Item = Param<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let first = if self.key_first { self.key.take() } else { None };
        let next = first.or_else(|| self.values.next()).or_else(|| self.key.take())?;
        self.left -= 1;
        Some(Param::Text(next))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a, V: Iterator<Item = &'a [u8]>> ExactSizeIterator for Params<'a, V> {}

/// Writes a record as a JSON object whose values are strings. `out` is cleared first.
pub fn write_object(out: &mut Vec<u8>, row: &Row) {
    out.clear();
    out.push(b'{');
    for (name, value) in row.fields().flatten() {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        write_string(out, value);
    }
    out.push(b'}');
}

fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in text.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, &str)]) -> Row {
        let mut row = Row::default();
        for (name, value) in fields {
            row.push_field(name.as_bytes(), value.as_bytes());
        }
        row
    }

    #[test]
    fn objects_are_json() {
        let mut out = b"left over".to_vec();
        let fields = [("field0", "größe"), ("a\"b", "\\ \r\n\t\u{1f}"), ("empty", "")];
        write_object(&mut out, &row(&fields));
        let read: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(read.len(), 3);
        for (name, value) in fields {
            assert_eq!(read[name], value);
        }
        write_object(&mut out, &Row::default());
        assert_eq!(out, b"{}");
    }

    #[test]
    fn keys_stand_where_their_statement_has_them() {
        let row = row(&[("a", "1"), ("b", "2")]);
        let text = |key_first| {
            let all = params(b"k", &row, key_first);
            assert_eq!(all.len(), 3);
            let texts: Vec<u8> =
                all.flat_map(|param| if let Param::Text(text) = param { text.to_vec() } else { vec![] }).collect();
            String::from_utf8(texts).unwrap()
        };
        assert_eq!((text(true).as_str(), text(false).as_str()), ("k12", "12k"));
    }
}
