//! What a core workload is, as a TrialSpec describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{InsertOrder, KeyDistribution};
use crate::mix::Mix;
use crate::values::{Length, Lengths};
use crate::version;

/// What a core workload is. The properties that it comes from are named in each field's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of YCSB's, or of ours beside them")]
pub struct CoreSpec {
    /// `table`.
    pub table: String,
    /// `recordcount`: records present before a run.
    pub records: u64,
    /// `insertstart`: first record number of the range.
    pub insert_start: u64,
    /// `insertcount`: how many records a load writes, and how many a run chooses from.
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
    /// `dataintegrity`: values follow from key and field, and reads are checked.
    pub integrity: bool,
    /// Every value begins with the version of its write, so that a lost write shows.
    #[serde(default)]
    pub versions: bool,
    /// The `…proportion` properties.
    pub mix: Mix,
    /// `requestdistribution` and its parameters.
    pub keys: KeyDistribution,
    /// `insertorder`.
    pub insert_order: InsertOrder,
    /// `zeropadding`: least digits of a key's number.
    pub zero_padding: usize,
    /// `minscanlength`, `maxscanlength`, `scanlengthdistribution`.
    pub scan_length: Length,
    /// Operations of the run, if it has an end of its own: YCSB leaves the zipfian room for the inserts expected.
    pub operations: Option<u64>,
    /// How many inserts behind the newest a chooser stays, so that the record is there when it is asked for.
    pub insert_lag: u64,
}

impl CoreSpec {
    /// Why the values of this spec cannot carry versions, if it asks for them and they cannot.
    pub fn check_versions(&self) -> Result<(), String> {
        let shortest = Lengths::shortest(&self.field_length);
        if self.versions && self.integrity {
            return Err(
                "versions and dataintegrity exclude each other: one says what a value is by its write, the other by \
                        its key alone"
                    .to_owned(),
            );
        }
        if self.versions && shortest < version::LEN {
            return Err(format!(
                "versions needs values of at least {} bytes, the shortest of this field length is {shortest}",
                version::LEN
            ));
        }
        Ok(())
    }
}
