//! Simulated scenarios in which the counter and the kernel's clock are computed.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// The kernel's clock, a counter at 2.6 GHz, and the clock derived from both.
struct Host {
    clock: TickCounter,
    /// The kernel's clock runs `kernel_ppm` faster than true time; the counter runs `counter_ppm` faster.
    kernel_ns: f64,
    ticks: f64,
    kernel_ppm: f64,
    counter_ppm: f64,
    vouched: bool,
    seen_ns: u64,
}

impl Host {
    /// Creates a host that was calibrated for 20 ms, during which the counter was `wrong_ppm` faster than afterwards.
    fn new(wrong_ppm: f64) -> Self {
        let mut host = Self {
            clock: TickCounter::new(),
            kernel_ns: 5e9,
            ticks: 7e12,
            kernel_ppm: 0.0,
            counter_ppm: wrong_ppm,
            vouched: true,
            seen_ns: 0,
        };
        let first = host.reading();
        host.passes(20_000_000);
        host.clock.begin_counter(first, || host.reading());
        host.counter_ppm = 0.0;
        host
    }

    fn passes(&mut self, ns: u64) {
        self.kernel_ns += ns as f64 * (1.0 + self.kernel_ppm / 1e6);
        self.ticks += ns as f64 * 2.6 * (1.0 + self.counter_ppm / 1e6);
    }

    fn reading(&self) -> ClockReading {
        ClockReading { width_ns: 40, ticks: self.ticks as u64, ns: self.kernel_ns as u64 }
    }

    /// The time of the clock, which must not have gone back.
    fn now(&mut self) -> u64 {
        let now = self.clock.lines.read_ns(|| self.ticks as u64, || self.kernel_ns as u64);
        assert!(now >= self.seen_ns, "{now} after {}", self.seen_ns);
        self.seen_ns = now;
        now
    }

    fn offset_ns(&mut self) -> i64 {
        self.now() as i64 - self.kernel_ns as i64
    }

    fn compare(&mut self) -> Agreement {
        self.clock.compare_clocks(|| self.reading(), || self.vouched).unwrap()
    }

    /// Simulates `seconds` seconds, each with a comparison and several readings. Returns the largest offset.
    fn runs(&mut self, seconds: u64) -> u64 {
        let mut most = 0;
        for _ in 0..seconds {
            for _ in 0..4 {
                self.passes(SECOND / 4);
                most = most.max(self.offset_ns().unsigned_abs());
            }
            self.compare();
        }
        most
    }
}

#[test]
fn late_drift_is_corrected() {
    let mut host = Host::new(-50.0);
    // Until the first comparison, the error is unknown: 50 ppm of a second.
    assert!((49_000..52_000).contains(&host.runs(1)));
    host.runs(20);
    let steady = host.runs(4 * 3_600);
    assert!(steady <= 5, "{steady} ns off within four hours");
    let advice = host.compare();
    assert!((advice.drift_ppm - 50.0).abs() < 0.1, "{advice:?}");
    assert!((49_000..60_000).contains(&advice.offset_ns_max) && advice.jumps == 0, "{advice:?}");
}

#[test]
fn ntp_slewing_is_no_jump() {
    let mut host = Host::new(0.0);
    for ppm in [0.0, 500.0, 0.0, -500.0] {
        host.kernel_ppm = ppm;
        host.runs(30);
        let off = host.offset_ns();
        assert!(off.abs() <= 5, "{off} ns off at {ppm} ppm: {:?}", host.compare());
    }
    let advice = host.compare();
    assert!(advice.jumps == 0 && advice.offset_ns_max < 600_000, "{advice:?}");
}

#[test]
fn comparisons_may_be_frequent_or_rare() {
    for every_ns in [1_000_000, 100_000_000, 10 * SECOND, 600 * SECOND] {
        let mut host = Host::new(-50.0);
        for _ in 0..20 + 20 * SECOND / every_ns {
            host.passes(every_ns);
            host.now();
            host.compare();
        }
        let off = host.offset_ns().unsigned_abs();
        assert!(off <= 5 + every_ns / 500_000_000, "{off} ns off with comparisons every {every_ns} ns");
        assert_eq!(host.compare().jumps, 0);
    }
}

/// Asserts that the counter was abandoned: this counts as one jump, and the clock follows the kernel's clock from then
/// on.
fn assert_abandoned(host: &mut Host) {
    assert_eq!(host.compare().jumps, 1);
    host.passes(SECOND);
    let ahead = host.offset_ns();
    assert!(ahead >= 0);
    host.counter_ppm = 1e6;
    host.runs(10);
    assert_eq!(host.offset_ns(), ahead, "the counter is no longer read");
    assert_eq!(host.compare().jumps, 1);
}

#[test]
fn suspend_is_a_jump() {
    for counter_kept_running in [true, false] {
        let mut host = Host::new(0.0);
        host.runs(5);
        if counter_kept_running {
            host.ticks += 2.6 * 3.6e12;
        } else {
            host.kernel_ns += 3.6e12;
        }
        host.now();
        assert_abandoned(&mut host);
        // A time that was read cannot be revoked, but the clock must not stop for an hour either.
        let ahead = if counter_kept_running { 3_600 * SECOND } else { 0 };
        assert!(host.offset_ns().unsigned_abs().abs_diff(ahead) < 1_000_000);
    }
}

#[test]
fn a_counter_that_restarts_is_a_jump() {
    let mut host = Host::new(0.0);
    host.runs(5);
    host.ticks = 0.0;
    host.passes(SECOND);
    // The next reading may go back, because readings store nothing. After the comparison, no reading does.
    assert_abandoned(&mut host);
    assert_eq!(host.offset_ns(), 0);
}

#[test]
fn a_small_jump_is_detected() {
    let mut host = Host::new(0.0);
    host.runs(5);
    host.ticks += 2.6e6;
    assert_abandoned(&mut host);
}

#[test]
fn counter_is_abandoned_with_the_kernel() {
    let mut host = Host::new(0.0);
    host.runs(5);
    host.vouched = false;
    assert_abandoned(&mut host);
    assert!(host.offset_ns() < 1_000);
}

#[test]
fn a_reading_that_was_interrupted_corrects_nothing() {
    let mut host = Host::new(0.0);
    host.runs(5);
    host.passes(SECOND);
    let late = ClockReading { width_ns: 900_000, ns: host.kernel_ns as u64 + 450_000, ..host.reading() };
    assert_eq!(host.clock.compare_clocks(|| late, || true).unwrap().jumps, 0);
    assert!(host.runs(5) <= 5);
}

#[test]
fn without_a_rate_the_counter_is_not_read() {
    let (clock, ticks) = (TickCounter::new(), |ticks| ClockReading { width_ns: 40, ticks, ns: ticks });
    clock.begin_counter(ticks(5), || ticks(5));
    assert_eq!(clock.compare_clocks(|| ticks(9), || true), None);
    clock.begin_counter(ticks(5), || ClockReading { width_ns: 90_000, ..ticks(9) });
    assert_eq!(clock.compare_clocks(|| ticks(9), || true), None);
    assert_eq!(clock.lines.read_ns(|| 9, || 77), 77);
}
