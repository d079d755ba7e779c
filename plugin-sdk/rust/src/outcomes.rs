//! What authors' functions are called with, and what they answer with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pb;

/// How many rows a table of reasons has at most.
pub(crate) const MAX_REASONS: usize = 255;
const FURTHER_REASONS: Reason = Reason::new("further reasons, more than one answer can hold");

/// The outcome of an extension point, in kube-scheduler's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The pod passes. Functions say it with `Ok`.
    Success = pb::Code::Success as isize,
    /// Something broke; the pod is tried again after backoff.
    Error = pb::Code::Error as isize,
    /// The pod doesn't fit now; evicting pods or a cluster event may help.
    Unschedulable = pb::Code::Unschedulable as isize,
    /// The pod doesn't fit, and evicting pods would not help.
    UnschedulableAndUnresolvable = pb::Code::UnschedulableAndUnresolvable as isize,
    /// Permit lets the pod wait. Functions say it with [`Permission::Wait`].
    Wait = pb::Code::Wait as isize,
    /// The plugin has no opinion on this pod.
    Skip = pb::Code::Skip as isize,
    /// The pod waits for something outside the cluster's state; no backoff when that arrives.
    Pending = pb::Code::Pending as isize,
}

impl Code {
    /// The code of that number on the wire; [`Code::Error`] where there is none.
    pub(crate) fn of(number: i32) -> Code {
        match pb::Code::try_from(number) {
            Ok(pb::Code::Success) => Code::Success,
            Ok(pb::Code::Unschedulable) => Code::Unschedulable,
            Ok(pb::Code::UnschedulableAndUnresolvable) => Code::UnschedulableAndUnresolvable,
            Ok(pb::Code::Wait) => Code::Wait,
            Ok(pb::Code::Skip) => Code::Skip,
            Ok(pb::Code::Pending) => Code::Pending,
            _ => Code::Error,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = pb::Code::try_from(*self as i32).unwrap_or_default();
        formatter.write_str(known.as_str_name())
    }
}

/// A verdict on the pod as a whole that is not simply a pass.
///
/// Any error turns into one of [`Code::Error`], so `?` ends an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What is decided.
    pub code: Code,
    /// Why, as sentences for the user.
    pub reasons: Vec<String>,
}

impl Status {
    /// Makes a verdict of any code.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Status { code, reasons: vec![reason.into()] }
    }

    /// Turns the pod down; evicting pods or a cluster event may help.
    pub fn unschedulable(reason: impl Into<String>) -> Self {
        Status::new(Code::Unschedulable, reason)
    }

    /// Turns the pod down; evicting pods would not help.
    pub fn unresolvable(reason: impl Into<String>) -> Self {
        Status::new(Code::UnschedulableAndUnresolvable, reason)
    }

    /// Turns the pod down until [`Requeue`](crate::Requeue) names it, and then without backoff.
    pub fn pending(reason: impl Into<String>) -> Self {
        Status::new(Code::Pending, reason)
    }

    /// Has no opinion on this pod.
    #[must_use]
    pub fn skip() -> Self {
        Status { code: Code::Skip, reasons: Vec::new() }
    }

    /// Ends the attempt with an error; the pod is tried again after backoff.
    pub fn error(reason: impl Into<String>) -> Self {
        Status::new(Code::Error, reason)
    }
}

impl<E: std::error::Error> From<E> for Status {
    fn from(error: E) -> Self {
        Status::error(error.to_string())
    }
}

/// Why a node is turned down; equal for all the nodes that it applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    /// One sentence; the scheduler counts nodes by it.
    pub text: Cow<'static, str>,
    /// [`Code::Unschedulable`] or [`Code::UnschedulableAndUnresolvable`].
    pub code: Code,
}

impl Reason {
    /// A reason that evicting pods, or an event, may take away.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Reason { text: Cow::Borrowed(text), code: Code::Unschedulable }
    }

    /// A reason that evicting pods would not take away.
    #[must_use]
    pub const fn unresolvable(text: &'static str) -> Self {
        Reason { text: Cow::Borrowed(text), code: Code::UnschedulableAndUnresolvable }
    }
}

/// A code for each node: 0 passes, k is `reasons[k - 1]`. Entries of nodes that
/// were not asked about carry no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// One code a node.
    pub codes: Vec<u8>,
    /// The table that codes point into, at most 255 rows.
    pub reasons: Vec<Reason>,
}

impl Verdicts {
    /// The code of a reason, which joins the table if it is not there yet.
    pub(crate) fn row(&mut self, mut reason: Reason) -> u8 {
        loop {
            // Tables are short; the reason met last is the likeliest.
            if let Some(at) = self.reasons.iter().rposition(|known| *known == reason) {
                return u8::try_from(at + 1).unwrap_or(u8::MAX);
            }
            if self.reasons.len() >= MAX_REASONS - 1 && reason != FURTHER_REASONS {
                reason = FURTHER_REASONS;
                continue;
            }
            self.reasons.push(reason);
            return u8::try_from(self.reasons.len()).unwrap_or(u8::MAX);
        }
    }
}

/// How the scheduler maps raw scores, over the nodes that are left, to 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalization {
    /// Scores are 0 to 100 already.
    #[default]
    None,
    /// Divided by the highest.
    Max,
    /// Divided by the highest, and the order turned round.
    MaxReverse,
    /// Stretched from the lowest to the highest.
    MinMax,
}

impl Normalization {
    pub(crate) fn message(self) -> pb::Normalization {
        match self {
            Normalization::None => pb::Normalization::None,
            Normalization::Max => pb::Normalization::Max,
            Normalization::MaxReverse => pb::Normalization::MaxReverse,
            Normalization::MinMax => pb::Normalization::MinMax,
        }
    }
}

/// What the scheduler writes to the pod before it binds; `None` removes a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataPatch {
    /// By key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// By key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
}

impl MetadataPatch {
    /// The patch that sets one annotation.
    pub fn annotate(key: impl Into<String>, value: impl Into<String>) -> Self {
        let annotations = BTreeMap::from([(key.into(), Some(value.into()))]);
        MetadataPatch { annotations, ..Default::default() }
    }
}

/// Permit's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The pod goes on.
    Granted,
    /// The pod waits so long at most; [`Requeue`](crate::Requeue) ends the wait earlier.
    Wait(Duration),
}

/// `PostFilter`'s answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// Something was done; what is nominated is kept.
    Keep,
    /// What is nominated is taken back.
    Clear,
    /// Room is made on that node, by evicting these pods first.
    Node {
        /// The node's name.
        name: String,
        /// UIDs of pods on it.
        victims: Vec<String>,
    },
}

/// One attempt at one pod; what is held for a pod is held under UID and attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodKey {
    /// `metadata.uid`.
    pub uid: String,
    /// Counts from 1.
    pub attempt: u32,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl PodKey {
    pub(crate) fn of(pod: &pb::PodRef) -> Self {
        PodKey {
            uid: pod.uid.clone(),
            attempt: pod.attempt,
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// The scheduler profile that uses the plugin. In a shadow profile answers are
/// compared and counted, and change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The `schedulerName`.
    pub name: String,
    /// The plugin only watches, and must not act by itself.
    pub shadow: bool,
}

/// Why a pod counts on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PodStage {
    /// The scheduler decided so; the API server hasn't confirmed yet.
    Assumed = pb::PodStage::Assumed as isize,
    /// `spec.nodeName` says so.
    Placed = pb::PodStage::Placed as isize,
    /// Room is being made.
    Nominated = pb::PodStage::Nominated as isize,
}

impl PodStage {
    pub(crate) fn of(number: i32) -> Option<PodStage> {
        match pb::PodStage::try_from(number) {
            Ok(pb::PodStage::Assumed) => Some(PodStage::Assumed),
            Ok(pb::PodStage::Placed) => Some(PodStage::Placed),
            Ok(pb::PodStage::Nominated) => Some(PodStage::Nominated),
            _ => None,
        }
    }
}

/// How a scheduling attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CycleOutcome {
    /// The pod is bound.
    Bound = pb::CycleOutcome::Bound as isize,
    /// No node was left.
    Unschedulable = pb::CycleOutcome::Unschedulable as isize,
    /// Something failed after a node was chosen.
    Failed = pb::CycleOutcome::Failed as isize,
    /// The pod went away, or the scheduler gave the attempt up.
    Aborted = pb::CycleOutcome::Aborted as isize,
}

impl CycleOutcome {
    pub(crate) fn of(number: i32) -> Option<CycleOutcome> {
        match pb::CycleOutcome::try_from(number) {
            Ok(pb::CycleOutcome::Bound) => Some(CycleOutcome::Bound),
            Ok(pb::CycleOutcome::Unschedulable) => Some(CycleOutcome::Unschedulable),
            Ok(pb::CycleOutcome::Failed) => Some(CycleOutcome::Failed),
            Ok(pb::CycleOutcome::Aborted) => Some(CycleOutcome::Aborted),
            _ => None,
        }
    }
}

/// An attempt's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub result: CycleOutcome,
    /// The node, if one was chosen.
    pub node_name: Option<String>,
    /// This plugin is among those that turned the pod down.
    pub rejected: bool,
}

/// An answer, at once or later. Anything is an answer at once.
pub enum Reply<T> {
    /// The answer.
    Now(T),
    /// What gives the answer, while other calls of the plugin go on.
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> Reply<T> {
    /// Answers when the future is done. Other calls go on meanwhile; the plugin's
    /// state is not the future's, unless it keeps [`Plugin::shared`](crate::Plugin::shared).
    pub fn later(future: impl Future<Output = T> + Send + 'static) -> Self {
        Reply::Later(Box::pin(future))
    }
}

impl<T> From<T> for Reply<T> {
    fn from(answer: T) -> Self {
        Reply::Now(answer)
    }
}

/// The call that a function answers.
#[derive(Clone, Debug)]
pub struct Call {
    /// The profile that asks.
    pub profile: Profile,
    /// The pod's attempt; what is held for the pod is held under it.
    pub key: PodKey,
}

/// How many parts of a key the scheduler compares.
const PARTS: usize = 8;

/// A pod's place in the queue: at most 8 numbers that are compared in order, the
/// lowest first. Missing ones are 0, and so is the default. Made of an array: one
/// that is too long does not compile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SortKey(Vec<i64>);

impl<const N: usize> From<[i64; N]> for SortKey {
    fn from(parts: [i64; N]) -> Self {
        const { assert!(N <= PARTS, "a sort key has at most 8 parts") };
        SortKey(parts.into())
    }
}

impl SortKey {
    pub(crate) fn message(self) -> pb::SortKey {
        pb::SortKey { parts: self.0 }
    }
}
