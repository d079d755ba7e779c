//! Answers as they are sent: bitmaps, codes with their reasons, scores.

use crate::nodes::Nodes;
use crate::outcomes::{Code, MAX_REASONS, Normalization, Reason, Status, Verdicts};
use crate::pb::{self, scores::Values, verdicts::Codes};

const MAX_SCORE: i64 = 100;

/// Verdicts as they are sent, the nodes that passed, and how many were turned down.
pub(crate) struct PackedVerdicts {
    pub message: pb::Verdicts,
    /// A bit an entry.
    pub passing: Vec<u8>,
    pub rejected: usize,
}

/// Makes the message; what was not asked is sent as 0.
///
/// # Errors
/// The verdicts contradict the protocol.
pub(crate) fn pack_verdicts(mut verdicts: Verdicts, nodes: &Nodes<'_>) -> Result<PackedVerdicts, String> {
    codes_have_reasons(&verdicts, |entry| nodes.asks(entry))?;
    let reasons = pack_reasons(&verdicts.reasons)?;
    let mut passing = vec![0; nodes.entries().div_ceil(8)];
    let mut rejected = 0;
    for (entry, code) in verdicts.codes.iter_mut().enumerate() {
        if !nodes.asks(entry) {
            *code = 0;
        } else if *code == 0 {
            passing[entry >> 3] |= 1 << (entry & 7);
        } else {
            rejected += 1;
        }
    }
    let message = if rejected == 0 {
        pb::Verdicts { codes: Some(Codes::All(0)), reasons: Vec::new() }
    } else {
        pb::Verdicts { codes: Some(Codes::Each(verdicts.codes.into())), reasons }
    };
    Ok(PackedVerdicts { message, passing, rejected })
}

/// Checks that there is a reason for each code that is asked for.
pub(crate) fn codes_have_reasons(verdicts: &Verdicts, asked: impl Fn(usize) -> bool) -> Result<(), String> {
    let table = verdicts.reasons.len();
    match verdicts.codes.iter().enumerate().find(|(entry, code)| usize::from(**code) > table && asked(*entry)) {
        Some((_, code)) => Err(format!("code {code} has no reason: there are {table}")),
        None => Ok(()),
    }
}

/// The reason table as it is sent.
///
/// # Errors
/// There are too many, or one has no text or a code of another kind.
pub(crate) fn pack_reasons(reasons: &[Reason]) -> Result<Vec<pb::Reason>, String> {
    if reasons.len() > MAX_REASONS {
        return Err(format!("{} reasons, at most {MAX_REASONS} fit into a code", reasons.len()));
    }
    let packed = |reason: &Reason| match reason.code {
        Code::Unschedulable | Code::UnschedulableAndUnresolvable if !reason.text.is_empty() => {
            Ok(pb::Reason { code: reason.code as i32, text: reason.text.to_string() })
        }
        code => Err(format!("a reason needs a text and an unschedulable code, not {:?} and {code}", reason.text)),
    };
    reasons.iter().map(packed).collect()
}

/// The codes of a message with their table.
///
/// # Errors
/// There is not one code a node.
pub(crate) fn unpack_verdicts(message: Option<&pb::Verdicts>, count: usize) -> Result<Verdicts, String> {
    let Some(message) = message else {
        return Ok(Verdicts { codes: vec![0; count], reasons: Vec::new() });
    };
    let codes = match &message.codes {
        Some(Codes::Each(each)) if each.len() == count => each.to_vec(),
        Some(Codes::Each(each)) => return Err(format!("{} codes for {count} nodes", each.len())),
        Some(Codes::All(all)) => vec![u8::try_from(*all).unwrap_or(u8::MAX); count],
        None => vec![0; count],
    };
    let reasons = message.reasons.iter().map(reason_of).collect();
    Ok(Verdicts { codes, reasons })
}

/// A reason as it came.
pub(crate) fn reason_of(message: &pb::Reason) -> Reason {
    Reason { text: message.text.clone().into(), code: Code::of(message.code) }
}

impl Verdicts {
    /// The verdicts of a function that sees one node at a time, with a table of the reasons met.
    pub(crate) fn of_each(nodes: &Nodes<'_>, mut filter: impl FnMut(usize) -> Result<(), Reason>) -> Self {
        let mut verdicts = Verdicts { codes: vec![0; nodes.entries()], reasons: Vec::new() };
        for (entry, index) in nodes.asked_entries() {
            if let Err(reason) = filter(index) {
                verdicts.codes[entry] = verdicts.row(reason);
            }
        }
        verdicts
    }
}

/// Makes the message; what was not asked is sent as 0.
///
/// # Errors
/// One is out of range.
pub(crate) fn pack_scores(
    mut points: Vec<i64>,
    normalization: Normalization,
    nodes: &Nodes<'_>,
) -> Result<pb::Scores, String> {
    points.iter_mut().enumerate().filter(|(entry, _)| !nodes.asks(*entry)).for_each(|(_, point)| *point = 0);
    pack_points(&points, normalization, nodes.entries())
}

/// Makes the message in the narrowest form.
///
/// # Errors
/// There are not that many scores, or one is out of range.
pub(crate) fn pack_points(points: &[i64], normalization: Normalization, count: usize) -> Result<pb::Scores, String> {
    if points.len() != count {
        return Err(format!("expected {count} scores, got {}", points.len()));
    }
    let low = points.iter().copied().min().unwrap_or_default().min(0);
    let high = points.iter().copied().max().unwrap_or_default().max(0);
    match normalization {
        Normalization::None if low < 0 || high > MAX_SCORE => {
            Err(format!("scores from {low} to {high} without normalization: 0 to {MAX_SCORE} is the range"))
        }
        Normalization::Max | Normalization::MaxReverse if low < 0 => {
            Err(format!("scores from {low}: they must not be negative to be divided by the highest"))
        }
        _ => {
            let values = narrowest(points, low, high);
            Ok(pb::Scores { values: Some(values), normalization: normalization.message().into() })
        }
    }
}

fn narrowest(points: &[i64], low: i64, high: i64) -> Values {
    // Truncation keeps what was just seen to fit.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if low >= 0 && high <= i64::from(u8::MAX) {
        Values::Uint8(points.iter().map(|point| *point as u8).collect())
    } else if low >= i64::from(i32::MIN) && high <= i64::from(i32::MAX) {
        Values::Int32(points.iter().flat_map(|point| (*point as i32).to_le_bytes()).collect())
    } else {
        Values::Int64(points.iter().flat_map(|point| point.to_le_bytes()).collect())
    }
}

/// Makes the message.
///
/// # Errors
/// The code has no meaning at this extension point, or a rejection gives no reason.
pub(crate) fn pack_status(status: Status, allowed: &[Code]) -> Result<pb::Status, String> {
    if status.code != Code::Error && !allowed.contains(&status.code) {
        return Err(format!("{} is no answer here", status.code));
    }
    if status.code != Code::Skip && status.reasons.iter().all(String::is_empty) {
        return Err(format!("{} without a reason", status.code));
    }
    Ok(pb::Status { code: status.code as i32, reasons: status.reasons })
}
