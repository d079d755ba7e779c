//! The fingerprint of a set of pods, by which a node's data say which pods they account for.
// Source: k8stopologyawareschedwg/podfingerprint, version v001.

use xxhash_rust::xxh64::{Xxh64, xxh64};

const PREFIX: &str = "pfp0v001";

/// The fingerprint of pods by namespace and name, in any order.
pub fn of<'a>(pods: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let hash = |(namespace, name): (&str, &str)| xxh64(name.as_bytes(), xxh64(namespace.as_bytes(), 0));
    let mut hashes: Vec<u64> = pods.map(hash).collect();
    hashes.sort_unstable();
    let mut sum = Xxh64::new(0);
    for hash in hashes {
        sum.update(&hash.to_le_bytes());
    }
    format!("{PREFIX}{:016x}", sum.digest())
}
