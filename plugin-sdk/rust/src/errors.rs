//! Why a call was not answered, and what its sender does next.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use tonic::Code;

use crate::log::log_failure;

/// Configure the profile, then repeat the call.
pub(crate) const NOT_CONFIGURED: &str = "NOT_CONFIGURED";
/// Open Sync, wait for the Ack, then repeat the call.
pub(crate) const NOT_SYNCED: &str = "NOT_SYNCED";
/// Ask about a newer generation.
pub(crate) const GENERATION_GONE: &str = "GENERATION_GONE";
/// Repeat the call with the pod's object.
pub(crate) const POD_UNKNOWN: &str = "POD_UNKNOWN";

/// The key under which a refusal's reason travels as trailing metadata.
pub(crate) const REASON_KEY: &str = "berth-reason";

// The host reads 8 KiB of trailers and nothing of longer ones; percent-encoded, this is 6.
const LONGEST_TEXT: usize = 512;

/// Why a call was not answered.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    pub code: Code,
    /// As in [`REASON_KEY`]; empty for failures that no repetition cures.
    pub reason: &'static str,
    pub text: String,
}

impl CallError {
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        CallError { code, reason: "", text: text.into() }
    }

    pub fn refused(reason: &'static str, text: impl Into<String>) -> Self {
        CallError { code: Code::FailedPrecondition, reason, text: text.into() }
    }

    pub fn invalid(text: impl Into<String>) -> Self {
        CallError::new(Code::InvalidArgument, text)
    }

    /// The text as far as a trailer holds it.
    pub fn short_text(&self) -> String {
        self.text.chars().take(LONGEST_TEXT).collect()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl From<CallError> for tonic::Status {
    fn from(error: CallError) -> Self {
        let mut status = tonic::Status::new(error.code, error.short_text());
        if !error.reason.is_empty() {
            status.metadata_mut().insert(REASON_KEY, tonic::metadata::MetadataValue::from_static(error.reason));
        }
        status
    }
}

/// Calls an author's function; a panic comes back as its text.
pub(crate) fn guarded<R>(name: &str, function: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| failed(name, panic.as_ref()))
}

/// Awaits an author's future; a panic comes back as its text.
pub(crate) async fn guarded_later<R>(
    name: &str,
    mut future: Pin<Box<dyn Future<Output = R> + Send>>,
) -> Result<R, String> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(failed(name, panic.as_ref()))),
    })
    .await
}

fn failed(name: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".into());
    log_failure("plugin function failed", name, &text);
    format!("{name}: {text}")
}
