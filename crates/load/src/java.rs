//! Java's string hashes, and the iteration order of its hash maps.
//!
//! YCSB's output depends on both. Values under `dataintegrity=true` consist of the results of `String.hashCode`. A
//! binding receives (and serialises) the fields of a record in `java.util.HashMap` order. Metrics and return codes are
//! reported in `java.util.concurrent.ConcurrentHashMap` order.
//!
//! Source: these classes in `OpenJDK`; the results were compared with runs of JDK 17 on random key sets. Bins that Java
//! turns into trees are not modelled: with a ninth key in one bin of a table of at least 64 bins, the order within that
//! bin may differ. Below 64 bins, Java enlarges the table instead, and this module does too.

pub mod number;

/// Number of bins of `new HashMap<>()` and `new ConcurrentHashMap<>()` after the first `put`.
const INITIAL_BINS: usize = 16;
/// With this many keys, a bin is too full when another key is appended (`TREEIFY_THRESHOLD`).
const FULL_BIN: usize = 8;
/// With at least this many bins in the table, a bin that is too full becomes a tree instead of enlarging the table.
const TREE_BINS: usize = 64;

/// `String.hashCode()`: Σ unit·31^(n−1−i) over the UTF-16 units, in wrapping 32-bit arithmetic.
#[must_use]
pub fn string_hash(s: &str) -> i32 {
    s.encode_utf16().fold(0, |hash, unit| extend_hash(hash, i32::from(unit)))
}

/// The hash of text with `bytes` appended, if the text alone hashes to `seed_hash` (0 for empty text).
///
/// The result is exact for ASCII, and for bytes above 127 if they represent ISO-8859-1 characters.
#[inline]
#[must_use]
pub fn hash_ascii(seed_hash: i32, bytes: &[u8]) -> i32 {
    bytes.iter().fold(seed_hash, |hash, &byte| extend_hash(hash, i32::from(byte)))
}

const fn extend_hash(hash: i32, next: i32) -> i32 {
    hash.wrapping_mul(31).wrapping_add(next)
}

/// Iteration order of a `new java.util.HashMap<>()` after `keys` were put in the given order.
///
/// Returns indices into `keys`. A key that occurs twice is returned once, as its first index (`put` keeps the old key
/// object).
#[must_use]
pub fn hash_map_order<T: AsRef<str>>(keys: &[T]) -> Vec<usize> {
    let hashes: Vec<u32> = keys.iter().map(|key| spread_hash(string_hash(key.as_ref()))).collect();
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
            resize_bins(&mut bins, &hashes);
        }
        if size > resize_limit(&bins) {
            resize_bins(&mut bins, &hashes);
        }
    }
    bins.concat()
}

/// Iteration order of a `new java.util.concurrent.ConcurrentHashMap<>()` after one thread has put `keys` in the given
/// order. (Several threads that collide on the map's size counter may delay an enlargement.)
///
/// Keys in one bin are in the order in which they were first put. YCSB's metrics UPDATE, INSERT, VERIFY, READ-FAILED
/// and READ-MODIFY-WRITE-FAILED share a bin, and so do READ and UPDATE-FAILED. Pass metrics in the order of their first
/// use.
///
/// Returns indices into `keys`. A key that occurs twice is returned once, as its first index.
#[must_use]
pub fn concurrent_hash_map_order<T: AsRef<str>>(keys: &[T]) -> Vec<usize> {
    let hashes: Vec<i32> = keys.iter().map(|key| string_hash(key.as_ref())).collect();
    concurrent_order(&hashes, |a, b| keys[a].as_ref() == keys[b].as_ref())
}

fn concurrent_order(hashes: &[i32], same: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let hashes: Vec<u32> = hashes.iter().map(|&hash| spread_hash(hash) & 0x7fff_ffff).collect();
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); INITIAL_BINS];
    let mut size = 0;
    for index in 0..hashes.len() {
        let table = bins.len();
        let bin = &mut bins[hashes[index] as usize & (table - 1)];
        let position = bin.iter().position(|&other| same(other, index));
        // `putVal` counts the nodes that it passed, even if the last one was the key itself.
        let walked = position.map_or(bin.len(), |place| place + 1);
        if position.is_none() {
            bin.push(index);
            size += 1;
        }
        if walked >= FULL_BIN && table < TREE_BINS {
            // `tryPresize(2 × table)` continues until the limit is at least `tableSizeFor(3 × table + 1)`.
            while resize_limit(&bins) < 4 * table {
                transfer_bins(&mut bins, &hashes);
            }
        }
        while position.is_none() && size >= resize_limit(&bins) {
            transfer_bins(&mut bins, &hashes);
        }
    }
    bins.concat()
}

/// Both maps mix the high half of a hash into the low half, because only the low bits choose the bin.
const fn spread_hash(hash: i32) -> u32 {
    hash as u32 ^ (hash as u32 >> 16)
}

/// The load factor 0.75: a `HashMap` grows above this number of keys, a `ConcurrentHashMap` as soon as it reaches it.
const fn resize_limit(bins: &[Vec<usize>]) -> usize {
    bins.len() / 4 * 3
}

/// `HashMap.resize`: doubles the bins; keys that shared a bin keep their order.
fn resize_bins(bins: &mut Vec<Vec<usize>>, hashes: &[u32]) {
    let bit = bins.len() as u32;
    let (low, mut high): (Vec<_>, Vec<_>) =
        bins.drain(..).map(|bin| bin.into_iter().partition::<Vec<usize>, _>(|&key| hashes[key] & bit == 0)).unzip();
    *bins = low;
    bins.append(&mut high);
}

/// `ConcurrentHashMap.transfer`: doubles the bins. In each bin, the longest tail that moves to one half keeps its order
/// (its nodes are reused, for concurrent readers). The keys before the tail are prepended one by one, which reverses
/// them.
fn transfer_bins(bins: &mut Vec<Vec<usize>>, hashes: &[u32]) {
    let bit = bins.len() as u32;
    let is_high = |key: usize| hashes[key] & bit != 0;
    let half = |bin: &[usize], high: bool| -> Vec<usize> {
        let last_run = (1..bin.len()).rev().find(|&at| is_high(bin[at]) != is_high(bin[at - 1])).unwrap_or(0);
        let (head, tail) = bin.split_at(last_run);
        head.iter().rev().chain(tail).copied().filter(|&key| is_high(key) == high).collect()
    };
    *bins = [false, true].iter().flat_map(|&high| bins.iter().map(move |bin| half(bin, high))).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hash_as_in_java() {
        // The hashes are as printed by JDK 17; the hash of the second text is known to be Integer.MIN_VALUE.
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("polygenelubricants"), i32::MIN);
        assert_eq!(string_hash("e\u{e9}\u{1d4b3}"), 5_005_122, "two units outside the basic plane");
        assert_eq!(string_hash("user6284781860667377211:field0"), 1_106_546_143);
        assert_eq!(string_hash("Aa"), string_hash("BB"));
    }

    #[test]
    fn a_hash_goes_on_where_it_stopped() {
        let text = "user6284781860667377211:field0:-56807877:2032869390";
        for cut in 0..=text.len() {
            assert_eq!(hash_ascii(string_hash(&text[..cut]), &text.as_bytes()[cut..]), string_hash(text));
        }
        assert_eq!(hash_ascii(0, &[b'e', 0xe9]), string_hash("e\u{e9}"), "bytes are ISO-8859-1");
    }

    /// Values under dataintegrity=true: `:` is appended to the text, then the hash of the text including this colon.
    #[test]
    fn growing_hashes_make_ycsb_integrity_values() {
        let mut text = "user6284781860667377211:field9:".to_owned();
        let mut hash = string_hash(&text);
        while text.len() < 50 {
            let more = format!("{hash}:");
            hash = hash_ascii(hash, more.as_bytes());
            text += &more;
        }
        assert_eq!(&text[..50], "user6284781860667377211:field9:-56807598:-11004408");
    }

    fn field_names(count: usize) -> Vec<String> {
        (0..count).map(|field| format!("field{field}")).collect()
    }

    #[test]
    fn ten_fields_iterate_as_in_a_ycsb_record() {
        assert_eq!(hash_map_order(&field_names(10)), [1, 0, 7, 6, 9, 8, 3, 2, 5, 4]);
    }

    #[test]
    fn maps_grow_at_their_own_moment_and_order() {
        // HashMap doubles at the 13th key; ConcurrentHashMap doubles at the 12th, and reverses parts of bins.
        let hash_map = [
            19, 17, 18, 22, 23, 20, 21, 26, 27, 24, 25, 28, 29, 11, 12, 1, 0, 10, 15, 16, 13, 14, 7, 6, 9, 8, 3, 2, 5,
            4,
        ];
        let mut concurrent = hash_map;
        concurrent.swap(16, 17);
        assert_eq!(hash_map_order(&field_names(30)), hash_map);
        assert_eq!(concurrent_hash_map_order(&field_names(30)), concurrent);
    }

    #[test]
    fn colliding_keys_enlarge_a_small_table() {
        let keys: Vec<&str> = "AaAa BBBB AaBB BBAa a q A Q c s C S e u E".split(' ').collect();
        assert_eq!(hash_map_order(&keys), [4, 6, 8, 10, 12, 14, 5, 7, 9, 11, 13, 0, 1, 2, 3]);
        assert_eq!(concurrent_hash_map_order(&keys), [6, 4, 10, 8, 12, 14, 5, 7, 9, 11, 13, 0, 1, 2, 3]);
        let nine_equal_hashes =
            "AaAaAaAa AaAaAaBB AaAaBBAa AaAaBBBB AaBBAaAa AaBBAaBB AaBBBBAa x AaBBBBBB z BBAaAaAa y";
        let keys: Vec<&str> = nine_equal_hashes.split(' ').collect();
        let order = [0, 1, 2, 3, 4, 5, 6, 8, 10, 7, 11, 9];
        assert_eq!(hash_map_order(&keys), order);
        assert_eq!(concurrent_hash_map_order(&keys), order);
    }

    #[test]
    fn a_key_put_twice_stands_once() {
        assert_eq!(hash_map_order(&["b", "a", "b"]), [1, 0]);
        assert_eq!(concurrent_hash_map_order(&["b", "a", "b"]), [1, 0]);
        assert!(hash_map_order::<&str>(&[]).is_empty() && concurrent_hash_map_order::<&str>(&[]).is_empty());
    }

    fn sort_metrics(names: &str) -> String {
        let names: Vec<&str> = names.split(' ').collect();
        concurrent_hash_map_order(&names).into_iter().map(|index| names[index]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn metric_order_equals_that_of_ycsb() {
        assert_eq!(sort_metrics("INSERT CLEANUP"), "CLEANUP INSERT");
        assert_eq!(sort_metrics("READ UPDATE CLEANUP"), "READ CLEANUP UPDATE");
        assert_eq!(sort_metrics("READ INSERT CLEANUP"), "READ CLEANUP INSERT");
        assert_eq!(sort_metrics("SCAN INSERT CLEANUP"), "CLEANUP INSERT SCAN");
        assert_eq!(sort_metrics("READ UPDATE READ-MODIFY-WRITE CLEANUP"), "READ READ-MODIFY-WRITE CLEANUP UPDATE");
        // Keys of one bin are in the order of first use: READ before UPDATE-FAILED, UPDATE before READ-FAILED.
        assert_eq!(
            sort_metrics("READ UPDATE READ-MODIFY-WRITE UPDATE-FAILED READ-FAILED CLEANUP"),
            "READ UPDATE-FAILED READ-MODIFY-WRITE CLEANUP UPDATE READ-FAILED"
        );
    }

    #[test]
    fn thirteen_metrics_have_grown_the_table() {
        let mut names: Vec<&str> = "READ READ-FAILED UPDATE UPDATE-FAILED SCAN SCAN-FAILED INSERT INSERT-FAILED \
            READ-MODIFY-WRITE READ-MODIFY-WRITE-FAILED VERIFY VERIFY-FAILED CLEANUP"
            .split(' ')
            .collect();
        assert_eq!(concurrent_hash_map_order(&names), [8, 11, 1, 10, 7, 0, 3, 5, 12, 9, 6, 2, 4]);
        names.reverse();
        assert_eq!(concurrent_hash_map_order(&names), [4, 1, 2, 11, 5, 9, 12, 7, 0, 10, 6, 3, 8]);
    }

    /// `site.ycsb.Status` of YCSB 0.17.0: name, `hashCode()` as printed by JDK 17, and description.
    const STATUSES: &str = "\
OK 975615059 The operation completed successfully.
ERROR -306229504 The operation failed.
NOT_FOUND -945631943 The requested record was not found.
NOT_IMPLEMENTED 402466344 The operation is not implemented for the current binding.
UNEXPECTED_STATE -1925370251 The operation reported success, but the result was not as expected.
BAD_REQUEST 1225150720 The request was not valid.
FORBIDDEN -640598601 The operation is forbidden.
SERVICE_UNAVAILABLE 2100225815 Dependant service for the current binding is not available.
BATCHED_OK -270038898 The operation has been batched by the binding to be executed later.";

    #[test]
    fn status_order_follows_java_hashes() {
        let (mut names, mut hashes) = (Vec::new(), Vec::new());
        for line in STATUSES.lines() {
            let parts: Vec<&str> = line.splitn(3, ' ').collect();
            // `site.ycsb.Status` computes `Arrays.hashCode` over its description, then its name.
            let hash = [parts[2], parts[0]].iter().fold(1, |hash, field| extend_hash(hash, string_hash(field)));
            assert_eq!(hash.to_string(), parts[1], "{line}");
            names.push(parts[0]);
            hashes.push(hash);
        }
        let order = |names: &[&str], hashes: &[i32]| {
            let order = concurrent_order(hashes, |_, _| false).into_iter();
            order.map(|index| names[index]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            order(&names, &hashes),
            "OK NOT_IMPLEMENTED BAD_REQUEST FORBIDDEN UNEXPECTED_STATE SERVICE_UNAVAILABLE BATCHED_OK NOT_FOUND ERROR"
        );
        // Three pairs share a bin, and change places when the second key of a pair is used first.
        names.reverse();
        hashes.reverse();
        assert_eq!(
            order(&names, &hashes),
            "NOT_IMPLEMENTED OK FORBIDDEN BAD_REQUEST UNEXPECTED_STATE BATCHED_OK SERVICE_UNAVAILABLE NOT_FOUND ERROR"
        );
    }
}
