//! Cluster events, and which of them matter.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::de::DeserializeOwned;

use crate::pb;

/// What happened to an object, in kube-scheduler's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Action {
    Add = pb::ActionType::Add as isize,
    Delete = pb::ActionType::Delete as isize,
    Update = pb::ActionType::Update as isize,
    UpdateNodeAllocatable = pb::ActionType::UpdateNodeAllocatable as isize,
    UpdateNodeLabel = pb::ActionType::UpdateNodeLabel as isize,
    UpdateNodeTaint = pb::ActionType::UpdateNodeTaint as isize,
    UpdateNodeCondition = pb::ActionType::UpdateNodeCondition as isize,
    UpdateNodeAnnotation = pb::ActionType::UpdateNodeAnnotation as isize,
    UpdateNodeDeclaredFeature = pb::ActionType::UpdateNodeDeclaredFeature as isize,
    UpdatePodLabel = pb::ActionType::UpdatePodLabel as isize,
    UpdatePodScaleDown = pb::ActionType::UpdatePodScaleDown as isize,
    UpdatePodToleration = pb::ActionType::UpdatePodToleration as isize,
    UpdatePodSchedulingGatesEliminated = pb::ActionType::UpdatePodSchedulingGatesEliminated as isize,
    UpdatePodGeneratedResourceClaim = pb::ActionType::UpdatePodGeneratedResourceClaim as isize,
}

impl Action {
    fn of(number: i32) -> Action {
        use Action as A;
        use pb::ActionType as T;
        match T::try_from(number) {
            Ok(T::Add) => A::Add,
            Ok(T::Delete) => A::Delete,
            Ok(T::UpdateNodeAllocatable) => A::UpdateNodeAllocatable,
            Ok(T::UpdateNodeLabel) => A::UpdateNodeLabel,
            Ok(T::UpdateNodeTaint) => A::UpdateNodeTaint,
            Ok(T::UpdateNodeCondition) => A::UpdateNodeCondition,
            Ok(T::UpdateNodeAnnotation) => A::UpdateNodeAnnotation,
            Ok(T::UpdateNodeDeclaredFeature) => A::UpdateNodeDeclaredFeature,
            Ok(T::UpdatePodLabel) => A::UpdatePodLabel,
            Ok(T::UpdatePodScaleDown) => A::UpdatePodScaleDown,
            Ok(T::UpdatePodToleration) => A::UpdatePodToleration,
            Ok(T::UpdatePodSchedulingGatesEliminated) => A::UpdatePodSchedulingGatesEliminated,
            Ok(T::UpdatePodGeneratedResourceClaim) => A::UpdatePodGeneratedResourceClaim,
            // What a later host may say is some update.
            _ => A::Update,
        }
    }
}

/// A set of cluster events that may let a pod fit which this plugin rejected;
/// all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct EventInterest {
    /// "Node", "Pod", or a watched kind as "podgroups.v1alpha1.group".
    pub resource: String,
    /// What happened.
    pub actions: Vec<Action>,
    /// JSON pointers of which one must have changed.
    pub changed_fields: Vec<String>,
    /// The object must match this selector.
    pub label_selector: Option<String>,
    /// Resources of which the pod of the event must request one.
    pub pod_resources: Vec<String>,
    /// The object is in the waiting pod's namespace.
    pub same_namespace: bool,
    /// Labels that the object and the waiting pod both carry, with equal values.
    pub equal_labels: Vec<String>,
    /// A label of the waiting pod whose value is the object's name.
    pub pod_label_names_object: Option<String>,
    /// These conditions suffice; the hint function is not asked.
    pub no_hint: bool,
}

impl EventInterest {
    /// An interest in these actions on a resource.
    pub fn new(resource: impl Into<String>, actions: impl Into<Vec<Action>>) -> Self {
        EventInterest { resource: resource.into(), actions: actions.into(), ..Default::default() }
    }

    pub(crate) fn message(&self, hints: bool) -> pb::EventInterest {
        pb::EventInterest {
            resource: self.resource.clone(),
            actions: self.actions.iter().map(|action| *action as i32).collect(),
            changed_fields: self.changed_fields.clone(),
            label_selector: self.label_selector.clone(),
            pod_resources: self.pod_resources.clone(),
            ask_hint: hints && !self.no_hint,
            same_namespace: self.same_namespace,
            equal_labels: self.equal_labels.clone(),
            pod_label_names_object: self.pod_label_names_object.clone(),
        }
    }
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// As in [`EventInterest::resource`].
    pub resource: String,
    /// What happened.
    pub action: Action,
    /// The object's JSON before; none for additions.
    pub old: Option<Vec<u8>>,
    /// The object's JSON after; none for deletions.
    pub new: Option<Vec<u8>>,
}

impl Event {
    pub(crate) fn of(message: &pb::ClusterEvent) -> Self {
        Event {
            resource: message.resource.clone(),
            action: Action::of(message.action),
            old: message.old_object.as_ref().map(|object| object.to_vec()),
            new: message.new_object.as_ref().map(|object| object.to_vec()),
        }
    }

    /// The event's object before and after, as any type.
    ///
    /// # Errors
    /// It can't be decoded.
    pub fn objects<T: DeserializeOwned>(&self) -> Result<(Option<T>, Option<T>), serde_json::Error> {
        let decoded = |data: &Option<Vec<u8>>| data.as_deref().map(serde_json::from_slice).transpose();
        Ok((decoded(&self.old)?, decoded(&self.new)?))
    }

    /// The event's object before and after, as a node.
    ///
    /// # Errors
    /// It can't be decoded.
    pub fn nodes(&self) -> Result<(Option<Node>, Option<Node>), serde_json::Error> {
        self.objects()
    }

    /// The event's object before and after, as a pod.
    ///
    /// # Errors
    /// It can't be decoded.
    pub fn pods(&self) -> Result<(Option<Pod>, Option<Pod>), serde_json::Error> {
        self.objects()
    }
}
