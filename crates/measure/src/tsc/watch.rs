//! Monitors how well the counter agrees with the kernel's clock, and determines the counter's rate.
//!
//! The kernel's clock is the reference, even while NTP slews it: hosts are compared by this clock, and the kernel has a
//! reason to correct its rate. The counter therefore follows slowly: never by a step, and by at most 500 ppm of its
//! rate.

/// A reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockReading {
    /// Time between the two readings of the kernel's clock, one before and one after the reading of the counter. This
    /// is the first field, so that the minimum of several readings is the tightest.
    pub width_ns: u64,
    /// The counter, read between the two readings of the kernel's clock.
    pub ticks: u64,
    /// The kernel's clock at the midpoint.
    pub ns: u64,
}

impl ClockReading {
    /// Whether the reading was not interrupted, and is therefore precise enough to compute a rate from it.
    pub fn is_tight(&self) -> bool {
        self.width_ns <= 2_000
    }
}

/// The agreement of the counter with the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// The error of the initial rate, averaged since the start of the process, in millionths; positive if the rate was
    /// too high.
    pub drift_ppm: f64,
    /// The largest difference between the two clocks at any comparison, ns.
    pub offset_ns_max: u64,
    /// 1 once the clocks have differed by more than slewing explains, or once the kernel has abandoned the counter.
    /// Times measured across this jump are wrong; after it, the kernel's clock is used.
    pub jumps: u64,
}

/// What to do after a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing needs to be changed.
    Keep,
    /// Change the rate to this number of ns per tick, in units of 2^−32.
    Steer(u64),
    /// Stop using the counter until the process exits. The counter was ahead of the kernel's clock by `lead_ns`.
    Leave { lead_ns: u64 },
}

/// The minimum time between corrections, so that the rate of the kernel's clock is known to within about 0.05 ppm. It
/// is less than a second, because comparisons are made once a second, and a clock that NTP slows down may have advanced
/// by less.
const BETWEEN_NS: u64 = 900_000_000;
/// The largest correction of the rate for removing an offset.
const SLEW_PPM: u64 = 500;
/// Largest change of the kernel's rate between two comparisons that slewing may explain. NTP slews by at most 500 ppm
/// (the limit of `adjtimex`), and may begin at any time; a suspend or an irregular counter causes a far larger change.
const EXPLAINED_PPM: u64 = 600;
/// The allowed difference between two readings that are not simultaneous, in addition to their uncertainty.
const EXPLAINED_NS: u64 = 20_000;

/// Compares the two clocks.
#[derive(Debug)]
pub struct Watch {
    first: ClockReading,
    first_rate: u64,
    /// The rate of the kernel's clock over at least [`BETWEEN_NS`]; the initial rate before the first correction.
    rate: u64,
    last: ClockReading,
    /// The reading at the time of the last correction.
    corrected: ClockReading,
    agreement: Agreement,
}

impl Watch {
    /// A watch that starts from two readings; `None` if no rate can be computed from them.
    pub fn new(first: ClockReading, last: ClockReading) -> Option<Self> {
        let rate = calculate_rate(first, last).filter(|_| first.is_tight() && last.is_tight())?;
        Some(Self { first, first_rate: rate, rate, last, corrected: last, agreement: Agreement::default() })
    }

    /// The current rate: ns per tick, in units of 2^−32.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The agreement so far.
    pub fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Compares the clocks: `own_ns` is the time of Loadstone's clock at the ticks of the reading. `vouched` means that
    /// the kernel itself still uses the counter to keep time.
    pub fn compare_reading(&mut self, now: ClockReading, own_ns: u64, vouched: bool) -> Advice {
        if self.agreement.jumps > 0 {
            return Advice::Keep;
        }
        let offset_ns = i128::from(own_ns) - i128::from(now.ns);
        self.agreement.offset_ns_max = self.agreement.offset_ns_max.max(offset_ns.unsigned_abs() as u64);
        if !vouched || !self.is_explained(now) {
            self.agreement.jumps = 1;
            return Advice::Leave { lead_ns: own_ns.saturating_sub(now.ns) };
        }
        self.last = now;
        let since_ns = now.ns - self.first.ns;
        let by_first = ns_at(self.first_rate, now.ticks - self.first.ticks);
        self.agreement.drift_ppm = (i128::from(by_first) - i128::from(since_ns)) as f64 / since_ns.max(1) as f64 * 1e6;
        let elapsed_ns = now.ns - self.corrected.ns;
        let Some(rate) = calculate_rate(self.corrected, now).filter(|_| now.is_tight() && elapsed_ns >= BETWEEN_NS)
        else {
            return Advice::Keep;
        };
        (self.rate, self.corrected) = (rate, now);
        // Removes half of the offset in as much time as has passed since the last correction, because the next
        // correction may be slightly late.
        let time_ns = i128::from(elapsed_ns) * 2;
        let most = time_ns * i128::from(SLEW_PPM) / 1_000_000;
        let slew = i128::from(rate) * offset_ns.clamp(-most, most) / time_ns;
        Advice::Steer((i128::from(rate) - slew) as u64)
    }

    /// Whether the last rate, which may have changed within limits, explains the difference between the last reading
    /// and this one.
    fn is_explained(&self, now: ClockReading) -> bool {
        let (Some(ticks), Some(ns)) = (now.ticks.checked_sub(self.last.ticks), now.ns.checked_sub(self.last.ns)) else {
            return false;
        };
        let counted = ns_at(self.rate, ticks);
        let slewed = (u128::from(counted.min(ns)) * u128::from(EXPLAINED_PPM) / 1_000_000) as u64;
        counted.abs_diff(ns) <= slewed + EXPLAINED_NS + now.width_ns + self.last.width_ns
    }
}

fn ns_at(rate: u64, ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(rate)) >> 32) as u64
}

/// The rate between two readings.
fn calculate_rate(from: ClockReading, to: ClockReading) -> Option<u64> {
    let ticks = to.ticks.checked_sub(from.ticks).filter(|&ticks| ticks > 0)?;
    let rate = (u128::from(to.ns.checked_sub(from.ns)?) << 32) / u128::from(ticks);
    u64::try_from(rate).ok().filter(|&rate| rate > 0)
}
