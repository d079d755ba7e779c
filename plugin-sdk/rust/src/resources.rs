//! Quantities and requests, counted as the scheduler does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

type Quantities = BTreeMap<String, Quantity>;

static NOTHING: LazyLock<BTreeMap<String, String>> = LazyLock::new(BTreeMap::new);

const NANO: i128 = 1_000_000_000;

/// The labels of an object.
pub fn labels(object: &impl Metadata<Ty = ObjectMeta>) -> &BTreeMap<String, String> {
    object.metadata().labels.as_ref().unwrap_or(&NOTHING)
}

/// The annotations of an object.
pub fn annotations(object: &impl Metadata<Ty = ObjectMeta>) -> &BTreeMap<String, String> {
    object.metadata().annotations.as_ref().unwrap_or(&NOTHING)
}

/// What the scheduler counts for a pod: milli-cores of `cpu`, units of anything else.
///
/// Containers and restartable init containers add up; an ordinary init container
/// runs beside the restartable ones before it, and the pod needs the larger of
/// both. A pod-level request replaces that.
// Source: component-helpers/resource/helpers.go (Kubernetes v1.36).
#[must_use]
pub fn request(pod: &Pod, resource: &str) -> i64 {
    let Some(spec) = &pod.spec else { return 0 };
    let overhead = of(spec.overhead.as_ref(), resource).unwrap_or(0);
    let level = spec.resources.as_ref().and_then(|level| of(level.requests.as_ref(), resource));
    if let Some(level) = level {
        return level + overhead;
    }
    let requested = |resources: Option<&k8s_openapi::api::core::v1::ResourceRequirements>| {
        of(resources.and_then(|resources| resources.requests.as_ref()), resource).unwrap_or(0)
    };
    let running: i64 = spec.containers.iter().map(|container| requested(container.resources.as_ref())).sum();
    let (mut peak, mut sidecars) = (0, 0);
    for container in spec.init_containers.iter().flatten() {
        let needed = requested(container.resources.as_ref());
        peak = peak.max(sidecars + needed);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += needed;
        }
    }
    peak.max(running + sidecars) + overhead
}

/// What pods may use of a node: milli-cores of `cpu`, units of anything else, 0 if it has none.
#[must_use]
pub fn allocatable(node: &Node, resource: &str) -> i64 {
    let status = node.status.as_ref();
    of(status.and_then(|status| status.allocatable.as_ref()), resource).unwrap_or(0)
}

fn of(quantities: Option<&Quantities>, resource: &str) -> Option<i64> {
    quantities?.get(resource).map(|quantity| amount(resource, quantity))
}

/// A quantity in milli-cores for `cpu`, in units for anything else; parts are
/// rounded up, and what is no quantity counts as 0.
#[must_use]
pub fn amount(resource: &str, quantity: &Quantity) -> i64 {
    let step = if resource == "cpu" { NANO / 1000 } else { NANO };
    let nano = in_nano(&quantity.0).unwrap_or(0);
    // Away from zero, as Quantity.Value does.
    let up = if nano >= 0 { step - 1 } else { 1 - step };
    i64::try_from((nano + up) / step).unwrap_or(if nano > 0 { i64::MAX } else { i64::MIN })
}

/// A quantity in billionths, below which it has no meaning.
// Source: apimachinery/pkg/api/resource/quantity.go (Kubernetes v1.36).
fn in_nano(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let (times, shift) = scale(suffix)?;
    let mut nano: i128 = format!("{whole}{part}").parse().ok()?;
    nano = nano.checked_mul(times)?;
    let shift = shift + 9 - i32::try_from(part.len()).ok()?;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    // More than billionths are rounded up.
    nano = if shift >= 0 { nano.checked_mul(power)? } else { nano / power + i128::from(nano % power > 0) };
    Some(if negative { -nano } else { nano })
}

/// What a suffix multiplies by: a factor, and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_count_as_the_scheduler_counts_them() {
        let cases = [
            ("cpu", "2", 2000),
            ("cpu", "100m", 100),
            ("cpu", "0.5", 500),
            ("cpu", "1100u", 2),
            ("memory", "1Ki", 1024),
            ("memory", "1.5Gi", 1_610_612_736),
            ("memory", "1k", 1000),
            ("memory", "1e3", 1000),
            ("memory", "100m", 1),
            ("memory", "-1500m", -2),
            ("memory", "9Ei", i64::MAX),
            ("memory", "a lot", 0),
        ];
        for (resource, text, expected) in cases {
            assert_eq!(expected, amount(resource, &Quantity(text.into())), "{resource}: {text}");
        }
    }
}
