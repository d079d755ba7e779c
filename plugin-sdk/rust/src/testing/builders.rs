//! Nodes and pods for tests.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::PROFILE;

type Quantities = BTreeMap<String, Quantity>;

fn quantities<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Quantities {
    texts.into_iter().map(|(name, text)| (name.to_string(), Quantity(text.to_string()))).collect()
}

/// A node with 8 CPUs, 32Gi and room for 110 pods, unless its resources say otherwise.
#[must_use]
pub fn node(name: &str) -> NodeBuilder {
    let metadata =
        ObjectMeta { name: Some(name.to_string()), uid: Some(format!("node-{name}")), ..Default::default() };
    let made = Node { metadata, ..Default::default() };
    NodeBuilder(made).resources([("cpu", "8"), ("memory", "32Gi"), ("pods", "110")])
}

/// A node that is being made.
#[derive(Clone, Debug)]
pub struct NodeBuilder(Node);

impl NodeBuilder {
    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.labels.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Sets what is allocatable, in place of what was.
    #[must_use]
    pub fn resources<'a>(mut self, texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let made = quantities(texts);
        let (allocatable, capacity) = (Some(made.clone()), Some(made));
        self.0.status = Some(NodeStatus { allocatable, capacity, ..Default::default() });
        self
    }
}

impl From<NodeBuilder> for Node {
    fn from(builder: NodeBuilder) -> Node {
        builder.0
    }
}

/// A pod of one container without requests, unless containers are added; its UID is
/// made from its namespace and name.
#[must_use]
pub fn pod(name: &str) -> PodBuilder {
    let metadata = ObjectMeta { name: Some(name.to_string()), ..Default::default() };
    let spec = PodSpec { scheduler_name: Some(PROFILE.into()), ..Default::default() };
    PodBuilder { metadata, spec }.namespace("default")
}

/// A pod that is being made.
#[derive(Clone, Debug)]
pub struct PodBuilder {
    metadata: ObjectMeta,
    spec: PodSpec,
}

impl PodBuilder {
    /// Sets the namespace, and the UID with it.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        self.metadata.uid = Some(format!("pod-{namespace}-{name}"));
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.metadata.labels.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds a container with these requests.
    #[must_use]
    pub fn container<'a>(mut self, requests: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let name = format!("container-{}", self.spec.containers.len());
        self.spec.containers.push(container(name, quantities(requests), None));
        self
    }

    /// Adds a container whose limits are its requests, as those of a guaranteed pod are.
    #[must_use]
    pub fn guaranteed<'a>(mut self, resources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let name = format!("container-{}", self.spec.containers.len());
        let resources = quantities(resources);
        self.spec.containers.push(container(name, resources.clone(), Some(resources)));
        self
    }

    /// Adds an init container whose limits are its requests.
    #[must_use]
    pub fn init<'a>(mut self, resources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let containers = self.spec.init_containers.get_or_insert_default();
        let resources = quantities(resources);
        containers.push(container(format!("init-{}", containers.len()), resources.clone(), Some(resources)));
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.spec.priority = Some(priority);
        self
    }

    /// Puts the pod on a node.
    #[must_use]
    pub fn on(mut self, node_name: &str) -> Self {
        self.spec.node_name = Some(node_name.into());
        self
    }
}

impl From<PodBuilder> for Pod {
    fn from(builder: PodBuilder) -> Pod {
        let builder = if builder.spec.containers.is_empty() { builder.container([]) } else { builder };
        let status = PodStatus { phase: Some("Pending".into()), ..Default::default() };
        Pod { metadata: builder.metadata, spec: Some(builder.spec), status: Some(status) }
    }
}

fn container(name: String, requests: Quantities, limits: Option<Quantities>) -> Container {
    let resources = ResourceRequirements { requests: Some(requests), limits, ..Default::default() };
    Container { name, image: Some("image".into()), resources: Some(resources), ..Default::default() }
}
