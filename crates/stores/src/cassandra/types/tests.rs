use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A type and a value of that type.
fn draw_value() -> impl Strategy<Value = (Type, Value)> {
    let simple = prop_oneof![
        ".{0,9}".prop_map(|text| (Type::Text, Value::Text(text))),
        "[ -~]{0,9}".prop_map(|text| (Type::Ascii, Value::Text(text))),
        vec(any::<u8>(), 0..9).prop_map(|bytes| (Type::Blob, Value::Blob(bytes))),
        any::<bool>().prop_map(|value| (Type::Boolean, Value::Boolean(value))),
        any::<i8>().prop_map(|value| (Type::TinyInt, Value::TinyInt(value))),
        any::<i16>().prop_map(|value| (Type::SmallInt, Value::SmallInt(value))),
        any::<i32>().prop_map(|value| (Type::Int, Value::Int(value))),
        any::<i64>().prop_map(|value| (Type::BigInt, Value::BigInt(value))),
        any::<i64>().prop_map(|value| (Type::Timestamp, Value::BigInt(value))),
        any::<i32>().prop_map(|value| (Type::Date, Value::Date(value))),
        any::<f32>().prop_filter("equal to itself", |v| !v.is_nan()).prop_map(|v| (Type::Float, Value::Float(v))),
        any::<f64>().prop_filter("equal to itself", |v| !v.is_nan()).prop_map(|v| (Type::Double, Value::Double(v))),
        vec(any::<u8>(), 1..20).prop_map(|bytes| (Type::VarInt, Value::VarInt(bytes))),
        (vec(any::<u8>(), 1..20), any::<i32>()).prop_map(|(b, scale)| (Type::Decimal, Value::Decimal(b, scale))),
        any::<u128>().prop_map(|value| (Type::Uuid, Value::Uuid(value))),
        any::<std::net::IpAddr>().prop_map(|address| (Type::Inet, Value::Inet(address))),
        (any::<i64>(), any::<i64>(), any::<i64>()).prop_map(|(m, d, n)| (Type::Duration, Value::Duration(m, d, n))),
    ];
    simple.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0..4usize)
                .prop_map(|((kind, value), n)| { (Type::List(Box::new(kind)), Value::Sequence(vec![value; n])) }),
            (inner.clone(), 1..4usize)
                .prop_map(|((kind, value), n)| { (Type::Vector(Box::new(kind), n), Value::Sequence(vec![value; n])) }),
            (inner.clone(), inner.clone()).prop_map(|((key, name), (kind, value))| {
                (Type::Map(Box::new(key), Box::new(kind)), Value::Map(vec![(name, value)]))
            }),
            vec(inner.clone(), 1..4).prop_map(|fields| {
                let (kinds, values) = fields.into_iter().unzip();
                (Type::Tuple(kinds), Value::Sequence(values))
            }),
            vec(inner, 1..4).prop_map(|fields| {
                let (kinds, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
                let names = kinds.into_iter().enumerate().map(|(n, kind)| (format!("f{n}"), kind));
                (Type::Udt("t".to_owned(), names.collect()), Value::Sequence(values))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn values_of_every_type_survive_a_round_trip((kind, value) in draw_value()) {
        let mut bytes = Vec::new();
        prop_assert_eq!(value.put(&kind, &mut bytes), Ok(()));
        let mut body = Body(&bytes);
        prop_assert_eq!(Value::read(&kind, &mut body), Ok(value));
        prop_assert!(body.0.is_empty());
    }

    #[test]
    fn damaged_values_and_types_end_in_an_error((kind, value) in draw_value(), at in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = Vec::new();
        value.put(&kind, &mut bytes).unwrap();
        let len = bytes.len();
        bytes[at % len] = byte;
        let _ = Value::read(&kind, &mut Body(&bytes));
        let _ = Type::read(&mut Body(&bytes), 0);
    }
}

/// Examples from `native_protocol_v5.spec`, 6.10 (`decimal`, `varint`), 6.7 (`date`) and 3 (`[vint]`).
#[test]
fn bytes_are_those_of_the_specification() {
    let bytes = |value: Value, kind: Type| {
        let mut out = Vec::new();
        value.put(&kind, &mut out).unwrap();
        out.split_off(4)
    };
    assert_eq!(bytes(Value::Date(0), Type::Date), [0x80, 0, 0, 0]);
    assert_eq!(bytes(Value::Date(-1), Type::Date), [0x7F, 0xFF, 0xFF, 0xFF]);
    // 3 months, 4 days and 5 ns become 6, 8 and 10 in zig-zag encoding.
    assert_eq!(bytes(Value::Duration(3, 4, 5), Type::Duration), [6, 8, 10]);
    // 256000 has 18 bits, so two more bytes are needed.
    let mut out = Vec::new();
    put_unsigned_vint(256_000, &mut out);
    assert_eq!(out, [0xC3, 0xE8, 0x00]);
    let floats = Value::Sequence(vec![Value::Float(1.0), Value::Float(2.0)]);
    assert_eq!(bytes(floats, Type::Vector(Box::new(Type::Float), 2)), [0x3F, 0x80, 0, 0, 0x40, 0, 0, 0]);
    assert_eq!(Value::Text(String::new()).put(&Type::Int, &mut Vec::new()), Err(Mismatch));
}

#[test]
fn vectors_are_known_by_their_class() {
    let class = "org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType , 3)";
    let mut option = vec![0, 0];
    option.extend_from_slice(&(class.len() as u16).to_be_bytes());
    option.extend_from_slice(class.as_bytes());
    assert_eq!(Type::read(&mut Body(&option), 0), Ok(Type::Vector(Box::new(Type::Float), 3)));
    // The answer of a broken server may contain lists nested without end.
    assert_eq!(Type::read(&mut Body(&[0, 0x20].repeat(100_000)), 0), Err(Short));
}

#[test]
fn routing_keys_of_several_columns_are_composites() {
    let key = |columns: &[&[u8]]| {
        let mut out = b"before".to_vec();
        put_routing_key(columns.iter().copied(), &mut out);
        out
    };
    assert_eq!(key(&[b"ab"]), b"ab");
    assert_eq!(key(&[b"ab", b""]), b"\0\x02ab\0\0\0\0");
}
