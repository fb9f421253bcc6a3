use super::*;

fn create_pace(rate: &[(f64, f64, f64)], arrival: Arrival) -> Pace {
    let rate = rate.iter().map(|&(from, to, seconds)| RatePiece { from, to, seconds }).collect();
    Pace::new(&PaceSpec::Open { rate, arrival }, 11).unwrap().unwrap()
}

fn due_ns(pace: &Pace, index: u64) -> u64 {
    pace.due_ns(index, &mut PaceCursor::default())
}

#[test]
fn fixed_rate_does_not_drift() {
    let third = create_pace(&[(3.0, 3.0, 0.0)], Arrival::Uniform);
    assert_eq!(due_ns(&third, 1), 333_333_333);
    assert_eq!(due_ns(&third, 3), 1_000_000_000);
    assert_eq!(due_ns(&third, 9_000_000_000), 3_000_000_000_000_000_000);
    let fast = create_pace(&[(1e9, 1e9, 0.0)], Arrival::Uniform);
    assert_eq!(due_ns(&fast, 123_456_789_012_345_678), 123_456_789_012_345_678);
}

#[test]
fn steps_follow_each_other_without_gap() {
    let steps = create_pace(&[(10.0, 10.0, 2.0), (1_000.0, 1_000.0, 1.0)], Arrival::Uniform);
    assert_eq!(due_ns(&steps, 19), 1_900_000_000);
    assert_eq!(due_ns(&steps, 20), 2_000_000_000);
    assert_eq!(due_ns(&steps, 21), 2_001_000_000);
    assert_eq!(due_ns(&steps, 5_020), 7_000_000_000, "the last rate continues");
}

#[test]
fn a_ramp_sends_the_area_under_it() {
    let ramp = create_pace(&[(0.0, 1_000.0, 10.0)], Arrival::Uniform);
    // t² × 50 operations are due until t.
    assert_eq!(due_ns(&ramp, 50) / 1_000_000, 1_000);
    assert_eq!(due_ns(&ramp, 1_250) / 1_000_000, 5_000);
    assert_eq!(due_ns(&ramp, 5_000) / 1_000_000, 10_000);
    assert_eq!(due_ns(&ramp, 6_000) / 1_000_000, 11_000);
    let down = create_pace(&[(1_000.0, 100.0, 10.0)], Arrival::Uniform);
    assert_eq!(due_ns(&down, 5_500) / 1_000_000, 10_000);
}

#[test]
fn due_times_increase_with_any_cursor() {
    for arrival in [Arrival::Uniform, Arrival::Poisson] {
        let pace = create_pace(&[(100.0, 5_000.0, 3.0), (50.0, 50.0, 1.0), (2_000.0, 2_000.0, 0.0)], arrival);
        let mut walking = PaceCursor::default();
        let mut last = 0;
        for index in 0..20_000 {
            let now = pace.due_ns(index, &mut walking);
            assert!(now >= last, "index {index}");
            if index % 997 == 0 {
                assert_eq!(now, due_ns(&pace, index));
            }
            last = now;
        }
        for ns in [1, 900_000_000, 2_500_000_000, 2_999_999_999, 3_000_000_001, 3_999_999_999, 60_000_000_000] {
            let first = pace.first_due_at(ns);
            assert!(due_ns(&pace, first) >= ns && (first == 0 || due_ns(&pace, first - 1) < ns), "{ns} ns: {first}");
        }
    }
}

#[test]
fn the_first_due_is_found_however_late() {
    let third = create_pace(&[(3.0, 3.0, 0.0)], Arrival::Uniform);
    assert_eq!(third.first_due_at(0), 0);
    assert_eq!(third.first_due_at(3_000_000_000_000_000_000), 9_000_000_000);
    assert_eq!(third.first_due_at(3_000_000_000_000_000_001), 9_000_000_001);
    let fast = create_pace(&[(1e9, 1e9, 0.0)], Arrival::Uniform);
    assert_eq!(fast.first_due_at(100_000_000_000_000_000), 100_000_000_000_000_000);
}

/// Gaps of a Poisson process: the mean and the standard deviation are 1/λ, and 63.2 % of the gaps are shorter than the
/// mean. Counts in windows of 5 s have a variance equal to their mean.
#[test]
fn poisson_arrivals_are_poisson() {
    let pace = create_pace(&[(1_000.0, 1_000.0, 0.0)], Arrival::Poisson);
    let mut cursor = PaceCursor::default();
    let due: Vec<f64> = (0..2_000_000).map(|i| pace.due_ns(i, &mut cursor) as f64 / 1e6).collect();
    let gaps: Vec<f64> = due.windows(2).map(|w| w[1] - w[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
    let short = gaps.iter().filter(|&&g| g < mean).count() as f64 / n;
    assert!((mean - 1.0).abs() < 0.004, "mean {mean}");
    assert!((deviation - 1.0).abs() < 0.02, "deviation {deviation}");
    assert!((short - 0.632_1).abs() < 0.004, "short {short}");
    let mut counts = vec![0f64; 390];
    for t in due {
        if let Some(count) = counts.get_mut((t / 5_000.0) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / 390.0;
    let dispersion = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 389.0 / mean;
    // The index of dispersion is 1 ± 4·sqrt(2/389).
    assert!((dispersion - 1.0).abs() < 0.29, "dispersion {dispersion}");
}

#[test]
fn nonsense_rates_are_refused() {
    let refuse = |from, to, seconds| {
        let rate = vec![RatePiece { from, to, seconds }];
        Pace::new(&PaceSpec::Open { rate, arrival: Arrival::Uniform }, 1).unwrap_err()
    };
    assert!(refuse(f64::NAN, 1.0, 1.0).contains("rate"));
    assert!(refuse(-1.0, 1.0, 1.0).contains("rate"));
    assert!(refuse(5.0, 0.0, 1.0).contains("last rate"));
}
