use super::*;
use crate::random::Purpose;
use proptest::prelude::*;

#[test]
fn four_digits_equal_the_standard_library() {
    for number in (0..10_000).flat_map(|four| [four, four * 10_000, 99_999_999 - four]) {
        assert_eq!((count_digits(number) + ZEROS).to_le_bytes(), format!("{number:08}").as_bytes());
    }
}

proptest! {
    #[test]
    fn keys_are_zero_padded_numbers(number: u64, shift in 0u32..64, padding in 0usize..30) {
        let number = number >> shift;
        prop_assert_eq!(format_key(number, InsertOrder::Ordered, padding), format!("user{number:0padding$}"));
    }
}

#[test]
fn long_keys_have_the_right_length() {
    for number in [LONG - 1, LONG, LONG * 10 - 1, LONG * 10, LONG * 100, LONG * 1_000 - 1, LONG * 1_000, u64::MAX] {
        for padding in [0, 17, 18, 21] {
            assert_eq!(format_key(number, InsertOrder::Ordered, padding), format!("user{number:0padding$}"));
        }
    }
}

fn format_key(number: u64, order: InsertOrder, padding: usize) -> String {
    let mut out = Vec::new();
    write_key(&mut out, number, order, padding);
    String::from_utf8(out).unwrap()
}

/// Compares keys with keys printed by YCSB's classes in version 0.17.0.
#[test]
fn keys_are_ycsbs() {
    for (number, hashed) in [
        (0, "user6284781860667377211"),
        (1, "user8517097267634966620"),
        (2, "user1820151046732198393"),
        (9, "user9105318085603802964"),
        (100, "user879817313296471393"),
        (255, "user8064062821143829734"),
        (256, "user2056600594528442646"),
        (65_536, "user3733039891711757428"),
        (1_000_000, "user1011632231655643464"),
        (2_147_483_648, "user5860980763039959109"),
        (9_999_999_999, "user3605131173811637474"),
        (u64::MAX, "user8289690350564177859"),
    ] {
        assert_eq!(format_key(number, InsertOrder::Hashed, 1), hashed);
    }
    assert_eq!(format_key(0, InsertOrder::Hashed, 25), "user0000006284781860667377211");
    assert_eq!(format_key(100, InsertOrder::Hashed, 25), "user0000000879817313296471393");
    assert_eq!(format_key(0, InsertOrder::Ordered, 1), "user0");
    assert_eq!(format_key(999, InsertOrder::Ordered, 8), "user00000999");
    assert_eq!(format_key(123_456_789, InsertOrder::Ordered, 8), "user123456789");
    assert_eq!(format_key(9, InsertOrder::Ordered, 20), "user00000000000000000009");
}

const THOUSAND: KeyRange = KeyRange { start: 0, count: 1_000, growth: 0 };
const ALL: Existing = Existing { first: 0, last: 999 };

/// The share of each of 1,000 records over a million choices.
fn count_shares(distribution: &KeyDistribution) -> Vec<f64> {
    let chooser = Chooser::new(distribution, THOUSAND, 1_000);
    let mut counts = vec![0f64; 1_000];
    for index in 0..1_000_000 {
        counts[chooser.choose_key(index, ALL, &mut Draws::new(3, index, Purpose::Key)) as usize] += 1e-6;
    }
    counts
}

fn sort_descending(mut shares: Vec<f64>) -> Vec<f64> {
    shares.sort_by(|a, b| b.total_cmp(a));
    shares
}

/// Allows four standard errors of a share over a million draws.
fn assert_share(got: f64, expected: f64, what: &str) {
    assert!((got - expected).abs() < 4.0 * (expected / 1e6).sqrt() + 2e-5, "{what}: {got} against {expected}");
}

/// Compares the shares of keys with the shares in 20 million draws of YCSB's generator.
#[test]
fn zipfian_is_as_flat_as_ycsbs() {
    let by_key = count_shares(&KeyDistribution::Zipfian);
    assert_share(by_key[144], 0.038_58, "hottest");
    assert_share(by_key[610], 0.019_95, "second");
    let by_rank = sort_descending(by_key);
    assert_share(by_rank[..10].iter().sum(), 0.126, "top 10");
    assert!((by_rank[..100].iter().sum::<f64>() - 0.29).abs() < 2e-3);
}

#[test]
fn the_other_distributions_are_ycsbs() {
    let uniform = count_shares(&KeyDistribution::Uniform);
    assert!(uniform.iter().all(|&s| (s - 0.001).abs() < 0.000_2));
    let hot = count_shares(&KeyDistribution::Hotspot { data_fraction: 0.2, operation_fraction: 0.8 });
    assert_share(hot[..200].iter().sum(), 0.8, "hot records");
    assert_share(hot[0], 0.004, "one hot record");
    let latest = count_shares(&KeyDistribution::Latest);
    assert_share(latest[999], 0.129_4, "latest, last");
    assert_share(latest[998], 0.065_1, "latest, before last");
    assert!(latest[0] == 0.0, "YCSB never chooses record 0 here");
    let exponential = count_shares(&KeyDistribution::Exponential { percentile: 95.0, fraction: 0.857_142_857_1 });
    let mean: f64 = exponential.iter().enumerate().map(|(n, s)| s * (999 - n) as f64).sum();
    // Without the redrawn tail, the mean would be 286.1.
    assert!((mean - 254.8).abs() < 2.0, "mean distance {mean}");
    let sequential = count_shares(&KeyDistribution::Sequential);
    assert!(sequential.iter().all(|&s| (s - 0.001).abs() < 1e-9));
    let zipf = sort_descending(count_shares(&KeyDistribution::true_zipfian()));
    assert_share(zipf[0], 0.129_4, "true zipfian, hottest");
    // The share is zeta(100) / zeta(1000). Gray's approximation, which YCSB uses, gives 0.696 here.
    assert!((zipf[..100].iter().sum::<f64>() - 0.685).abs() < 2e-3);
}

#[test]
fn zipfian_hot_keys_survive_pending_inserts() {
    let range = KeyRange { growth: 100_000, ..THOUSAND };
    let chooser = Chooser::new(&KeyDistribution::Zipfian, range, 1_000);
    // YCSB's algorithm draws until it hits a record.
    let zipfian = ScrambledZipfian::new(range.count + range.growth + 1);
    let endless = |index: u64| {
        let mut draws = Draws::new(3, index, Purpose::Key);
        std::iter::repeat_with(|| zipfian.next_item(&mut draws)).find(|&number| number <= ALL.last)
    };
    for index in 0..2_000 {
        let chosen = chooser.choose_key(index, ALL, &mut Draws::new(3, index, Purpose::Key));
        assert_eq!(Some(chosen), endless(index));
    }
}

#[test]
fn records_beyond_the_range_are_not_drawn_for() {
    // Deletes and inserts have replaced all records in a range that was not expected to grow.
    let chooser = Chooser::new(&KeyDistribution::Zipfian, THOUSAND, 1_000);
    let (shifted, mut draws) = (Existing { first: 5_000, last: 5_999 }, Draws::new(3, 1, Purpose::Key));
    let mut same = draws.clone();
    assert!((5_000..6_000).contains(&chooser.choose_key(0, shifted, &mut draws)));
    let Chooser::Zipfian(_, zipfian, _) = &chooser else { unreachable!() };
    for _ in 0..REDRAWS {
        zipfian.next_item(&mut same);
    }
    assert_eq!(draws.next_u64(), same.next_u64(), "as many draws as before");
}

#[test]
fn single_record_range_does_not_hang() {
    for distribution in [KeyDistribution::Uniform, KeyDistribution::Zipfian, KeyDistribution::Sequential] {
        let chooser = Chooser::new(&distribution, THOUSAND, 1_000);
        let only = Existing { first: 777, last: 777 };
        assert_eq!(chooser.choose_key(0, only, &mut Draws::new(1, 1, Purpose::Key)), 777);
    }
}
