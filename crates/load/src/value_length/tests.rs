use super::*;
use crate::random::Purpose;

#[test]
fn lengths_follow_their_distributions() {
    let tally = |length: Length| {
        let lengths = Lengths::new(&length);
        let mut counts = std::collections::BTreeMap::new();
        for i in 0..100_000 {
            *counts.entry(lengths.next_length(&mut Draws::new(2, i, Purpose::Value))).or_insert(0u32) += 1;
        }
        counts
    };
    let uniform = tally(Length::Uniform { min: 10, max: 12 });
    assert_eq!(uniform.keys().copied().collect::<Vec<_>>(), [10, 11, 12]);
    assert!(uniform.values().all(|&n| (32_000..34_700).contains(&n)));
    // With YCSB's zipfian over 1..=100, 18.89 % of the values have the shortest length.
    let zipfian = tally(Length::Zipfian { min: 1, max: 100 });
    assert!((18_300..19_500).contains(&zipfian[&1]), "{}", zipfian[&1]);
    assert_eq!(*zipfian.keys().last().unwrap(), 100);
    let histogram = tally(Length::Histogram { block: 8, counts: vec![0, 3, 1] });
    // r is uniform in 0..4. For r = 0 the result is the empty first block (≤ 0), for 1..3 the second block, and never
    // the last.
    assert_eq!(histogram.keys().copied().collect::<Vec<_>>(), [8, 16]);
}
