use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn damaged_types_end_in_an_error(bytes in vec(any::<u8>(), 0..64)) {
        let _ = Type::read(&mut Body(&bytes), 0);
    }
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
