//! What the plugin does, counted, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tonic::Code;

use crate::pb::NackReason;

/// Upper bounds of the duration buckets, in seconds.
const BOUNDS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const DURATION: &str = "berth_plugin_call_duration_seconds";

/// Whether numbers only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// They do; the name ends with `_total`.
    Counter,
    /// They go up and down.
    Gauge,
}

/// Something that a plugin counts or measures itself.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Letters, digits and underscores.
    pub name: String,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// What the numbers are.
    pub help: String,
    /// The numbers, each with its labels.
    pub values: Vec<(Vec<(String, String)>, f64)>,
}

impl Metric {
    /// One number without labels.
    pub fn new(name: impl Into<String>, kind: MetricKind, help: impl Into<String>, value: f64) -> Self {
        Metric { name: name.into(), kind, help: help.into(), values: vec![(Vec::new(), value)] }
    }
}

/// Counts; each line of the exposition is made when it is read.
pub(crate) struct Meter {
    plugin: String,
    version: String,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    calls: BTreeMap<(&'static str, &'static str), u64>,
    durations: BTreeMap<&'static str, Durations>,
    passed: usize,
    rejected: usize,
    refusals: BTreeMap<String, u64>,
    generation: i64,
    objects: [usize; 3],
}

#[derive(Default)]
struct Durations {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Meter {
    pub fn new(plugin: &str, version: &str) -> Self {
        Meter { plugin: plugin.into(), version: version.into(), counted: Mutex::default() }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call was answered, or failed with a code.
    pub fn answered(&self, method: &'static str, code: Code, took: Duration, verdicts: Option<(usize, usize)>) {
        let mut counted = self.counted();
        *counted.calls.entry((method, code_name(code))).or_default() += 1;
        counted.durations.entry(method).or_default().observe(took.as_secs_f64());
        let (passed, rejected) = verdicts.unwrap_or_default();
        counted.passed += passed;
        counted.rejected += rejected;
    }

    /// A message of the state stream was refused.
    pub fn refused(&self, reason: NackReason) {
        let name = reason.as_str_name().trim_start_matches("NACK_REASON_").to_string();
        *self.counted().refusals.entry(name).or_default() += 1;
    }

    /// The state moved: what is held of nodes, pods and other objects.
    pub fn state(&self, generation: i64, objects: [usize; 3]) {
        let mut counted = self.counted();
        (counted.generation, counted.objects) = (generation, objects);
    }

    /// Everything in Prometheus' text format.
    pub fn text(&self) -> String {
        let counted = self.counted();
        let mut page = Page::default();
        page.head("berth_plugin_info", "gauge", "The plugin.");
        page.line("berth_plugin_info", &[("plugin", &self.plugin), ("version", &self.version)], 1);
        page.head("berth_plugin_answered_calls_total", "counter", "Calls answered, by method and gRPC code.");
        for ((method, code), number) in &counted.calls {
            page.line("berth_plugin_answered_calls_total", &[("method", method), ("code", code)], number);
        }
        page.head(DURATION, "histogram", "Time to answer a call, waiting for state included.");
        for (method, durations) in &counted.durations {
            durations.write(&mut page, method);
        }
        page.head("berth_plugin_node_verdicts_total", "counter", "Nodes that passed Filter or were turned down.");
        page.line("berth_plugin_node_verdicts_total", &[("verdict", "passed")], counted.passed);
        page.line("berth_plugin_node_verdicts_total", &[("verdict", "rejected")], counted.rejected);
        page.head(
            "berth_plugin_state_refusals_total",
            "counter",
            "Messages of the state stream that were refused, by reason.",
        );
        for (reason, number) in &counted.refusals {
            page.line("berth_plugin_state_refusals_total", &[("reason", reason)], number);
        }
        let help = "The generation of the state that is held, 0 if none is.";
        page.head("berth_plugin_state_generation", "gauge", help);
        page.line("berth_plugin_state_generation", &[], counted.generation);
        page.head("berth_plugin_state_objects", "gauge", "What is held of the cluster.");
        for (kind, number) in ["nodes", "pods", "other"].iter().zip(counted.objects) {
            page.line("berth_plugin_state_objects", &[("kind", kind)], number);
        }
        page.text
    }
}

impl Durations {
    fn observe(&mut self, seconds: f64) {
        self.count += 1;
        self.sum += seconds;
        if let Some(bucket) = self.buckets.get_mut(BOUNDS.partition_point(|bound| *bound < seconds)) {
            *bucket += 1;
        }
    }

    fn write(&self, page: &mut Page, method: &str) {
        let name = format!("{DURATION}_bucket");
        let mut below = 0;
        for (bound, number) in BOUNDS.iter().zip(self.buckets) {
            below += number;
            page.line(&name, &[("method", method), ("le", &bound.to_string())], below);
        }
        page.line(&name, &[("method", method), ("le", "+Inf")], self.count);
        page.line(&format!("{DURATION}_sum"), &[("method", method)], self.sum);
        page.line(&format!("{DURATION}_count"), &[("method", method)], self.count);
    }
}

/// What a plugin counts itself, as text.
pub(crate) fn text_of(metrics: &[Metric]) -> String {
    let mut page = Page::default();
    for metric in metrics {
        page.head(&metric.name, if metric.kind == MetricKind::Counter { "counter" } else { "gauge" }, &metric.help);
        for (labels, value) in &metric.values {
            let labels: Vec<_> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            page.line(&metric.name, &labels, value);
        }
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let pairs: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
        let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

/// A code as gRPC's own documents, and the SDKs in other languages, write it.
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
