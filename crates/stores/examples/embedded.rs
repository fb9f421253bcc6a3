//! A complete embedded engine: a sorted map in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use loadstone_load::Status;
use loadstone_stores::about::{About, setting};
use loadstone_stores::key_value::{KeyValue, KeyValueStore};
use loadstone_stores::{Durability, EngineError, Failure, Guarantee, Options, Store};

/// The store. `KeyValueStore` adds rows, fields, updates and sessions.
pub type Memory = KeyValueStore<MemoryEngine>;

/// A table of keys and values.
#[derive(Debug)]
pub struct MemoryEngine {
    table: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    bytes_max: u64,
}

impl KeyValue for MemoryEngine {
    // Command lines, the reference pages and the lab all use these values.
    const ABOUT: About =
        About { name: "memory", line: "a map in memory", networked: false, properties: &[setting("memory.size")] };

    // State that a client keeps between operations, such as an iterator or a buffer. This store needs none.
    type Client = ();

    fn open(options: &Options) -> Result<Self, EngineError> {
        if !options.create {
            return Err(EngineError::failed("the records were lost when the process that loaded them exited")
                .hint("choose a store that keeps its records"));
        }
        Ok(Self { table: RwLock::default(), bytes_max: options.bytes("memory.size", 1 << 30)? })
    }

    fn guarantee(&self) -> Guarantee {
        // The actual durability of acknowledged writes: the requested level or a stronger level. This store provides
        // only `None`.
        Guarantee::new(Durability::None, "kept in memory").fact("size_bytes", self.bytes_max.to_string())
    }

    fn get(&self, (): &mut (), key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        Ok(table.get(key).map(|value| visit(value)).is_some())
    }

    fn put(&self, (): &mut (), key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if value.len() as u64 > self.bytes_max {
            return Err(Failure::new(Status::NoSpace, format!("{} bytes do not fit into memory.size", value.len())));
        }
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn remove(&self, (): &mut (), key: &[u8]) -> Result<(), Failure> {
        self.table.write().unwrap_or_else(PoisonError::into_inner).remove(key);
        Ok(())
    }

    fn scan(&self, (): &mut (), from: &[u8], count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in table.range(from.to_vec()..).take(count) {
            visit(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(self) -> Result<(), EngineError> {
        Ok(())
    }
}

fn main() -> Result<(), EngineError> {
    let store = Memory::open(&Options { create: true, ..Options::default() })?;
    let _session = store.session()?;
    Ok(())
}
