//! Bitmaps of entries and indices of nodes, as they are sent.

use prost::bytes::Bytes;

/// One bit an entry, least significant first.
pub(crate) fn pack_bits(bits: &[bool]) -> Bytes {
    let mut packed = vec![0_u8; bits.len().div_ceil(8)];
    for (index, _) in bits.iter().enumerate().filter(|(_, bit)| **bit) {
        packed[index >> 3] |= 1 << (index & 7);
    }
    packed.into()
}

/// One bool an entry.
///
/// # Errors
/// The bitmap is not for that many.
pub(crate) fn unpack_bits(bitmap: &[u8], count: usize) -> Result<Vec<bool>, String> {
    if bitmap.len() != count.div_ceil(8) {
        let wanted = count.div_ceil(8);
        return Err(format!("a bitmap of {count} entries has {wanted} bytes, not {}", bitmap.len()));
    }
    Ok((0..count).map(|index| bitmap[index >> 3] >> (index & 7) & 1 == 1).collect())
}

/// Indices of nodes as they are sent.
pub(crate) fn pack_indices(indices: &[u32]) -> Bytes {
    indices.iter().flat_map(|index| index.to_le_bytes()).collect()
}

/// Indices of that many nodes.
///
/// # Errors
/// They are cut off, do not ascend, or are those of other nodes.
pub(crate) fn unpack_indices(packed: &[u8], count: usize) -> Result<Vec<u32>, String> {
    let (indices, rest) = packed.as_chunks();
    if !rest.is_empty() {
        return Err(format!("indices of {} bytes, each has 4", packed.len()));
    }
    let indices: Vec<u32> = indices.iter().map(|index| u32::from_le_bytes(*index)).collect();
    if let Some([before, after, ..]) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("index {after} after {before}: they have to ascend"));
    }
    match indices.last() {
        Some(last) if *last as usize >= count => Err(format!("index {last} of {count} nodes")),
        _ => Ok(indices),
    }
}
