//! The description of a core workload in a TrialSpec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{InsertOrder, KeyDistribution};
use crate::proportions::Mix;
use crate::refusal::Refusal;
use crate::value_length::{Length, Lengths};
use crate::version;

/// A core workload. The description of each field names the corresponding YCSB property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of YCSB's or of Loadstone's")]
pub struct CoreSpec {
    /// `table`.
    pub table: String,
    /// `recordcount`: number of records present before a run.
    pub records: u64,
    /// `insertstart`: number of the first record in the range.
    pub insert_start: u64,
    /// `insertcount`: number of records that a load writes, and from which a run chooses.
    pub insert_count: u64,
    /// `fieldcount`.
    pub field_count: usize,
    /// `fieldnameprefix`.
    pub field_name_prefix: String,
    /// `fieldlength`, `minfieldlength`, `fieldlengthdistribution`, `fieldlengthhistogram`.
    pub field_length: Length,
    /// `readallfields`.
    pub read_all_fields: bool,
    /// `writeallfields`.
    pub write_all_fields: bool,
    /// `dataintegrity`: values are derived from key and field, and reads are checked.
    pub integrity: bool,
    /// Every value begins with the version of its write, so that the read-back detects lost writes.
    #[serde(default)]
    pub versions: bool,
    /// The `…proportion` properties.
    pub mix: Mix,
    /// `requestdistribution` and its parameters.
    pub keys: KeyDistribution,
    /// `insertorder`.
    pub insert_order: InsertOrder,
    /// `zeropadding`: minimum number of digits in a key.
    pub zero_padding: usize,
    /// `minscanlength`, `maxscanlength`, `scanlengthdistribution`.
    pub scan_length: Length,
    /// Number of operations of the run, if limited: YCSB sizes its zipfian for the expected inserts.
    pub operations: Option<u64>,
    /// Number of most recent inserts that a chooser avoids, so that a chosen record exists when it is read.
    pub insert_lag: u64,
}

/// Maximum size of a record, bytes. Larger records belong in a file system.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// Maximum number of digits in a key: no supported store allows longer keys.
const ZERO_PADDING_MAX: usize = 1_000;

impl CoreSpec {
    /// Refuses a spec that cannot be loaded or, with `run`, that cannot be run.
    pub fn check_spec(&self, run: bool) -> Result<(), Refusal> {
        self.check_range()?;
        self.keys.check_distribution()?;
        self.mix.check_mix(run)?;
        self.scan_length.check_length("work.scan_length")?;
        self.check_values()
    }

    /// Checks the range of records that a load writes and from which a run chooses.
    fn check_range(&self) -> Result<(), Refusal> {
        let Self { records, insert_start, insert_count, .. } = *self;
        if i64::try_from(records).is_err() {
            return Err(Refusal::for_value("work.records", &format!("at most {}", i64::MAX), records));
        }
        if insert_start.checked_add(insert_count).is_none_or(|end| end > records) {
            return Err(Refusal::new(
                format!(
                    "{{work.insert_start}} + {{work.insert_count}} = {insert_start} + {insert_count} is beyond \
                     {{work.records}} = {records}"
                ),
                "set {work.records} to the number of records after the whole load",
            ));
        }
        if insert_count == 0 {
            return Err(Refusal::new(
                format!(
                    "there are no records in the range: {{work.insert_start}} = {insert_start}, {{work.insert_count}} = 0, \
                     {{work.records}} = {records}"
                ),
                "set {work.insert_count} to at least 1, or leave {work.insert_start} and {work.insert_count} out",
            ));
        }
        Ok(())
    }

    /// Checks the fields of a record.
    fn check_values(&self) -> Result<(), Refusal> {
        self.field_length.check_length("work.field_length")?;
        if self.integrity && !matches!(self.field_length, Length::Constant { .. }) {
            return Err(Refusal::new(
                "{work.integrity} needs {work.field_length.distribution}=constant",
                "set {work.field_length.distribution}=constant: expected values follow from the length of the field",
            ));
        }
        if self.field_count == 0 {
            return Err(Refusal::for_value("work.field_count", "at least 1", 0));
        }
        let longest = Lengths::longest(&self.field_length);
        if longest.checked_mul(self.field_count).is_none_or(|bytes| bytes > RECORD_BYTES_MAX) {
            return Err(Refusal::new(
                format!(
                    "a record of {{work.field_count}} {} and {{work.field_length}} {longest} is larger than \
                     {RECORD_BYTES_MAX} bytes",
                    self.field_count
                ),
                "lower {work.field_count} or {work.field_length}",
            ));
        }
        if self.zero_padding > ZERO_PADDING_MAX {
            return Err(Refusal::for_value(
                "work.zero_padding",
                &format!("at most {ZERO_PADDING_MAX}"),
                self.zero_padding,
            ));
        }
        self.check_versions()
    }

    /// Checks that the values of this spec are able to contain versions, if versions are requested.
    pub fn check_versions(&self) -> Result<(), Refusal> {
        let shortest = Lengths::shortest(&self.field_length);
        if self.versions && self.integrity {
            return Err(Refusal::new(
                "{work.versions} and {work.integrity} are mutually exclusive: values are derived from writes or from keys",
                "leave one of {work.versions} and {work.integrity} out",
            ));
        }
        if self.versions && shortest < version::LEN {
            return Err(Refusal::new(
                format!(
                    "{{work.versions}} needs values of at least {} bytes, but the shortest {{work.field_length}} is \
                     {shortest}",
                    version::LEN
                ),
                "raise {work.field_length} or {work.field_length.min}, or leave {work.versions} out",
            ));
        }
        Ok(())
    }
}
