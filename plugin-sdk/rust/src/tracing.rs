//! Spans of the calls that are answered, as children of the scheduler's.

use std::env;
use std::time::Duration;

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, Span, TracerProviderBuilder};

use crate::errors::CallError;
use crate::trace_file::TraceFile;

const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/// Opens spans where the environment says that they are collected; otherwise none.
pub(crate) struct Tracing {
    plugin: String,
    collected: Option<(SdkTracerProvider, SdkTracer)>,
}

/// W3C trace context on its way in.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceParent {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl Extractor for TraceParent {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.traceparent.as_deref(),
            "tracestate" => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

impl Tracing {
    /// Writes spans where `OTEL_*` and `BERTH_TRACE_FILE` say. In a runtime.
    ///
    /// # Errors
    /// That can't be had.
    pub fn from_environment(plugin: &str, version: &str) -> Result<Self, String> {
        let mut builder = None;
        if let Some(path) = given("BERTH_TRACE_FILE") {
            let file = TraceFile::open(&path).map_err(|error| format!("trace file: {error}"))?;
            builder = Some(SdkTracerProvider::builder().with_batch_exporter(file));
        }
        if env::var("OTEL_TRACES_EXPORTER").as_deref() != Ok("none")
            && ENDPOINTS.iter().any(|name| given(name).is_some())
        {
            let exporter = otlp_exporter()?;
            builder = Some(builder.unwrap_or_default().with_batch_exporter(exporter));
        }
        let collected = builder.map(|builder| collecting(builder, plugin, version));
        Ok(Tracing { plugin: plugin.to_string(), collected })
    }

    /// Opens the span of a call.
    pub fn span(&self, method: &str, parent: &TraceParent) -> Option<Span> {
        let (_, tracer) = self.collected.as_ref()?;
        let context = TraceContextPropagator::new().extract(parent);
        let name = format!("{}/{method}", self.plugin);
        let builder = tracer.span_builder(name).with_kind(SpanKind::Server);
        Some(tracer.build_with_context(builder, &context))
    }

    /// Writes out what is pending.
    pub fn shutdown(&self, patience: Duration) -> Result<(), String> {
        match &self.collected {
            Some((provider, _)) => provider.shutdown_with_timeout(patience).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

/// Says on a call's span what became of it, and ends it.
pub(crate) fn end(span: Option<Span>, attributes: impl FnOnce() -> Vec<KeyValue>, error: Option<&CallError>) {
    let Some(mut span) = span else { return };
    if span.is_recording() {
        span.set_attributes(attributes());
    }
    if let Some(error) = error {
        span.set_status(Status::error(error.text.clone()));
    }
    span.end();
}

fn collecting(builder: TracerProviderBuilder, plugin: &str, version: &str) -> (SdkTracerProvider, SdkTracer) {
    let service = given("OTEL_SERVICE_NAME").unwrap_or_else(|| plugin.to_string());
    let resource = Resource::builder_empty()
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attribute(KeyValue::new("service.name", service))
        .with_attribute(KeyValue::new("service.version", version.to_string()))
        .build();
    let mut builder = builder.with_resource(resource);
    if given("OTEL_TRACES_SAMPLER").is_none() {
        // Exactly the traces that the scheduler sampled.
        builder = builder.with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)));
    }
    let provider = builder.build();
    let scope = InstrumentationScope::builder("berth-plugin-sdk").with_version(env!("CARGO_PKG_VERSION")).build();
    let tracer = provider.tracer_with_scope(scope);
    (provider, tracer)
}

fn otlp_exporter() -> Result<OtlpExporter, String> {
    match PROTOCOLS.iter().find_map(|name| given(name)) {
        Some(protocol) if protocol != "grpc" => {
            Err(format!("{}: {protocol:?} is not served here, grpc is", PROTOCOLS[1]))
        }
        _ => OtlpExporter::builder().with_tonic().build().map_err(|error| format!("traces over OTLP: {error}")),
    }
}

/// A variable of the environment that says something.
pub(crate) fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}
