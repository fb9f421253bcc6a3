//! What Java decides about bytes and order, reproduced: string hashes and the iteration order of its hash maps.
//!
//! YCSB's outputs depend on both. A value under `dataintegrity=true` is made of `String.hashCode` texts, the fields of
//! a record reach a binding (and its serialised bytes) in `java.util.HashMap` order, and metrics and return codes are
//! reported in `java.util.concurrent.ConcurrentHashMap` order.
//!
//! Source: the classes of those names in `OpenJDK`, compared with real runs of JDK 17 on random key sets. Not modelled: bins that Java turns into trees, which needs a ninth key in one bin of a table of
//! at least 64 bins; there the order within that bin may differ. Below 64 bins Java enlarges the table instead, and so
//! do we.

/// Bins of `new HashMap<>()` and `new ConcurrentHashMap<>()` once the first key is in.
const INITIAL_BINS: usize = 16;
/// A bin that already holds this many keys when another is appended is too full (`TREEIFY_THRESHOLD`).
const FULL_BIN: usize = 8;
/// From this many bins on a too full bin becomes a tree instead of enlarging the table (`MIN_TREEIFY_CAPACITY`).
const TREE_BINS: usize = 64;

/// `String.hashCode()`: Σ unit·31^(n−1−i) over the UTF-16 units, in wrapping 32-bit arithmetic.
#[must_use]
pub fn string_hash(s: &str) -> i32 {
    s.encode_utf16().fold(0, |hash, unit| push(hash, i32::from(unit)))
}

/// The hash of a text that hashes to `seed_hash` (0 for the empty text) with `bytes` appended.
///
/// Exact for ASCII, and for bytes above 127 if they stand for ISO-8859-1 characters.
#[inline]
#[must_use]
pub fn hash_ascii(seed_hash: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(seed_hash, |hash, &byte| push(hash, i32::from(byte)))
}

/// `Arrays.hashCode` of elements with these hashes, which is also what IDEs generate for the fields of a class.
///
/// `site.ycsb.Status` has it over description, then name.
#[must_use]
pub fn fields_hash(hashes: &[i32]) -> i32 {
    hashes.iter().fold(1, |hash, &field| push(hash, field))
}

const fn push(hash: i32, next: i32) -> i32 {
    hash.wrapping_mul(31).wrapping_add(next)
}

/// Iteration order of a `new java.util.HashMap<>()` after putting `keys` in the order given.
///
/// Returns indices into `keys`; a key given twice appears once, as its first index (`put` keeps the old key object).
#[must_use]
pub fn hash_map_order<T: AsRef<str>>(keys: &[T]) -> Vec<usize> {
    let hashes: Vec<u32> = keys.iter().map(|key| spread(string_hash(key.as_ref()))).collect();
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); INITIAL_BINS];
    let mut size = 0;
    for (index, key) in keys.iter().enumerate() {
        let table = bins.len();
        let bin = &mut bins[hashes[index] as usize & (table - 1)];
        if bin.iter().any(|&other| keys[other].as_ref() == key.as_ref()) {
            continue;
        }
        bin.push(index);
        size += 1;
        if bin.len() > FULL_BIN && table < TREE_BINS {
            resize(&mut bins, &hashes);
        }
        if size > limit(&bins) {
            resize(&mut bins, &hashes);
        }
    }
    bins.concat()
}

/// Iteration order of a `new java.util.concurrent.ConcurrentHashMap<>()` after putting `keys` in the order given, by
/// one thread (threads that collide on its size counter may put off an enlargement).
///
/// Returns indices into `keys`; a key given twice appears once, as its first index.
#[must_use]
pub fn concurrent_hash_map_order<T: AsRef<str>>(keys: &[T]) -> Vec<usize> {
    let hashes: Vec<i32> = keys.iter().map(|key| string_hash(key.as_ref())).collect();
    concurrent_order(&hashes, |a, b| keys[a].as_ref() == keys[b].as_ref())
}

/// [`concurrent_hash_map_order`] for keys of any class, given each key's `hashCode()`. The keys must be distinct.
#[must_use]
pub fn concurrent_hash_map_order_by_hash(hashes: &[i32]) -> Vec<usize> {
    concurrent_order(hashes, |_, _| false)
}

fn concurrent_order(hashes: &[i32], same: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let hashes: Vec<u32> = hashes.iter().map(|&hash| spread(hash) & 0x7fff_ffff).collect();
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); INITIAL_BINS];
    let mut size = 0;
    for index in 0..hashes.len() {
        let table = bins.len();
        let bin = &mut bins[hashes[index] as usize & (table - 1)];
        let found = bin.iter().position(|&other| same(other, index));
        // `putVal` counts the nodes that it walked past, also when the last of them was the key itself.
        let walked = found.map_or(bin.len(), |place| place + 1);
        if found.is_none() {
            bin.push(index);
            size += 1;
        }
        if walked >= FULL_BIN && table < TREE_BINS {
            // `tryPresize(2 × table)` goes on until the limit is no longer below `tableSizeFor(3 × table + 1)`.
            while limit(&bins) < 4 * table {
                transfer(&mut bins, &hashes);
            }
        }
        while found.is_none() && size >= limit(&bins) {
            transfer(&mut bins, &hashes);
        }
    }
    bins.concat()
}

/// Both maps mix the high half of a hash into the low half, because only low bits choose the bin.
const fn spread(hash: i32) -> u32 {
    hash as u32 ^ (hash as u32 >> 16)
}

/// The load factor .75: a `HashMap` grows when it holds more than this, a `ConcurrentHashMap` when it holds as many.
const fn limit(bins: &[Vec<usize>]) -> usize {
    bins.len() / 4 * 3
}

/// `HashMap.resize`: twice the bins; keys that shared a bin keep their order.
fn resize(bins: &mut Vec<Vec<usize>>, hashes: &[u32]) {
    let bit = bins.len() as u32;
    let (low, mut high): (Vec<_>, Vec<_>) = bins
        .drain(..)
        .map(|bin| {
            bin.into_iter()
                .partition::<Vec<usize>, _>(|&key| hashes[key] & bit == 0)
        })
        .unzip();
    *bins = low;
    bins.append(&mut high);
}

/// `ConcurrentHashMap.transfer`: twice the bins. The longest tail of a bin that stays together keeps its order (its
/// nodes are reused for readers' sake); the keys before it are prepended one by one, so each half gets them reversed.
fn transfer(bins: &mut Vec<Vec<usize>>, hashes: &[u32]) {
    let bit = bins.len() as u32;
    let is_high = |key: usize| hashes[key] & bit != 0;
    let half = |bin: &[usize], high: bool| -> Vec<usize> {
        let last_run = (1..bin.len())
            .rev()
            .find(|&at| is_high(bin[at]) != is_high(bin[at - 1]))
            .unwrap_or(0);
        let (head, tail) = bin.split_at(last_run);
        head.iter()
            .rev()
            .chain(tail)
            .copied()
            .filter(|&key| is_high(key) == high)
            .collect()
    };
    *bins = [false, true]
        .iter()
        .flat_map(|&high| bins.iter().map(move |bin| half(bin, high)))
        .collect();
}
