//! Spans in a file, one JSON object a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use serde_json::{Map, json};

/// Appends spans to a file, with ids in hex and numbers for kind and status as in
/// OTLP/JSON. Several processes may append to one file: each batch is one write.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    resource: Map<String, serde_json::Value>,
}

impl TraceFile {
    /// Opens the file for appending, and makes it if it isn't there.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(TraceFile { file, resource: Map::new() })
    }

    fn line(&self, span: &SpanData) -> String {
        let parent = match span.parent_span_id {
            SpanId::INVALID => String::new(),
            known => known.to_string(),
        };
        let (status, message) = match &span.status {
            Status::Unset => (0, ""),
            Status::Ok => (1, ""),
            Status::Error { description } => (2, description.as_ref()),
        };
        let line = json!({
            "traceId": span.span_context.trace_id().to_string(),
            "spanId": span.span_context.span_id().to_string(),
            "parentSpanId": parent,
            "name": span.name,
            "kind": kind(&span.span_kind),
            "startTimeUnixNano": nanoseconds(span.start_time),
            "endTimeUnixNano": nanoseconds(span.end_time),
            "attributes": values(span.attributes.iter().map(|KeyValue { key, value, .. }| (key.as_str(), value))),
            "resource": self.resource,
            "status": {"code": status, "message": message},
        });
        format!("{line}\n")
    }
}

impl SpanExporter for TraceFile {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let lines: String = batch.iter().map(|span| self.line(span)).collect();
        (&self.file)
            .write_all(lines.as_bytes())
            .map_err(|error| OTelSdkError::InternalFailure(format!("trace file: {error}")))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = values(resource.iter().map(|(key, value)| (key.as_str(), value)));
    }
}

fn kind(kind: &SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn values<'a>(pairs: impl Iterator<Item = (&'a str, &'a Value)>) -> Map<String, serde_json::Value> {
    let value = |value: &Value| match value {
        Value::Bool(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F64(value) => json!(value),
        other => json!(other.as_str()),
    };
    pairs.map(|(key, each)| (key.to_string(), value(each))).collect()
}
