//! A plugin as its author describes it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Serialize;

use crate::arguments::{NoArguments, TakeArguments};
use crate::clock::Clock;
use crate::events::{Event, EventInterest};
use crate::metrics::Metric;
use crate::nodes::Nodes;
use crate::objects::{ObjectKey, PlacedPod};
use crate::outcomes::{
    Call, MetadataPatch, Nomination, Normalization, Outcome, Permission, Reason, Reply, SortKey, Status, Verdicts,
};
use crate::pb::ExtensionPoint;
use crate::pod_groups::{GroupPreemption, Placement, PlacementProgress, PodGroup, ProposedPlacement};
use crate::requeue::Requeue;

type Shared<F> = Option<Box<F>>;
type PodVerdict = dyn Fn(&Call, &Pod) -> Result<(), Status> + Send + Sync;
type PreEnqueue = dyn Fn(&Call, &Pod) -> Reply<Result<(), Status>> + Send + Sync;
/// One code for each entry of an answer.
type FilterNodes = dyn Fn(&Pod, &Nodes<'_>) -> Result<Verdicts, String> + Send + Sync;
/// One score for each entry of an answer.
type ScoreNodes = dyn Fn(&Pod, &Nodes<'_>) -> Result<Option<Vec<i64>>, String> + Send + Sync;
type PostFilter = dyn Fn(&Call, &Pod, &Nodes<'_>, &Verdicts) -> Result<Nomination, Status> + Send + Sync;
type Patching = dyn Fn(&Call, &Pod, &Node) -> Reply<Result<Option<MetadataPatch>, Status>> + Send + Sync;
type Permit = dyn Fn(&Call, &Pod, &Node) -> Reply<Result<Permission, Status>> + Send + Sync;
type Bind = dyn Fn(&Call, &Pod, &Node, &BTreeMap<String, String>) -> Reply<Result<(), Status>> + Send + Sync;
type AboutNode = dyn Fn(&Call, &str) + Send + Sync;
type CycleDone = dyn Fn(&Call, &Outcome) + Send + Sync;
type QueueingHints = dyn Fn(&[Arc<Pod>], &[Event]) -> Vec<Vec<bool>> + Send + Sync;
type PodsLeft = dyn Fn(&[String]) + Send + Sync;
type GeneratePlacements = dyn Fn(&PodGroup, &Pod, &Nodes<'_>) -> Result<Vec<Placement>, Status> + Send + Sync;
type ScorePlacements =
    dyn Fn(&PodGroup, &Pod, &Nodes<'_>, &[ProposedPlacement<'_>]) -> Option<Vec<i64>> + Send + Sync;
type PlacementFeasible = dyn Fn(&PodGroup, &Pod, PlacementProgress) -> Result<(), Status> + Send + Sync;
type PodGroupPostFilter =
    dyn Fn(&PodGroup, &Pod, &Nodes<'_>, &Verdicts) -> Result<Vec<GroupPreemption>, Status> + Send + Sync;
type NodeUpserted = dyn Fn(usize, &Node) + Send + Sync;
type ObjectUpserted = dyn Fn(&ObjectKey, &[u8]) -> Result<(), String> + Send + Sync;

/// What the rest of the crate knows of a plugin: its functions, each with the
/// author's state in it, and what it announces.
// Each is something that an author may say.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Functions {
    pub name: String,
    pub version: String,
    pub arguments: Arc<dyn TakeArguments>,
    pub profile_removed: Shared<dyn Fn(&str) + Send + Sync>,
    pub pre_enqueue: Shared<PreEnqueue>,
    pub pre_filter: Shared<PodVerdict>,
    pub filter_nodes: Shared<FilterNodes>,
    /// Filter sees all nodes at once, and so the pods on them.
    pub filters_at_once: bool,
    pub without_overlays: bool,
    pub post_filter: Shared<PostFilter>,
    pub score_nodes: Shared<ScoreNodes>,
    pub normalization: Normalization,
    pub reserve: Shared<Patching>,
    pub unreserve: Shared<AboutNode>,
    pub permit: Shared<Permit>,
    pub pre_bind: Shared<Patching>,
    pub bind: Shared<Bind>,
    pub post_bind: Shared<AboutNode>,
    pub cycle_done: Shared<CycleDone>,
    pub queueing_hints: Shared<QueueingHints>,
    pub sort_key: Shared<dyn Fn(&Pod) -> SortKey + Send + Sync>,
    pub pods_left: Shared<PodsLeft>,
    pub queue_reset: Shared<dyn Fn(&str) + Send + Sync>,
    pub generate_placements: Shared<GeneratePlacements>,
    pub score_placements: Shared<ScorePlacements>,
    pub placement_feasible: Shared<PlacementFeasible>,
    pub pod_group_post_filter: Shared<PodGroupPostFilter>,
    pub events: Vec<EventInterest>,
    pub requeue: Option<Requeue>,
    pub clock: Option<Clock>,
    pub wants_pods: bool,
    pub pod_resources: Vec<String>,
    pub pods_without_status: bool,
    pub wants_nominations: bool,
    pub resources: Vec<WatchedResource>,
    pub state_reset: Shared<dyn Fn(bool) + Send + Sync>,
    pub state_settled: Shared<dyn Fn() + Send + Sync>,
    pub node_upserted: Shared<NodeUpserted>,
    pub node_removed: Shared<dyn Fn(usize, usize) + Send + Sync>,
    pub pod_upserted: Shared<dyn Fn(&PlacedPod) + Send + Sync>,
    pub pod_removed: Shared<dyn Fn(&PlacedPod) + Send + Sync>,
    pub object_upserted: Shared<ObjectUpserted>,
    pub object_removed: Shared<dyn Fn(&ObjectKey) + Send + Sync>,
    pub metrics: Shared<dyn Fn() -> Vec<Metric> + Send + Sync>,
    pub state: Shared<dyn Fn() -> serde_json::Value + Send + Sync>,
    pub pod_fields: Option<Vec<String>>,
    pub node_local: bool,
    pub score_needs_feasible: bool,
    pub wanted_deadline: Option<Duration>,
    pub wanted_deadlines: Vec<(Point, Duration)>,
}

/// A kind beside nodes and pods that the scheduler shall show the plugin.
#[derive(Clone, Debug, Default)]
pub struct WatchedResource {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural.
    pub resource: String,
    /// Absent: all objects.
    pub label_selector: Option<String>,
}

impl WatchedResource {
    /// All objects of a kind.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        let (group, version, resource) = (group.into(), version.into(), resource.into());
        WatchedResource { group, version, resource, label_selector: None }
    }
}

/// An extension point, to want more time at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Point {
    PreEnqueue = ExtensionPoint::PreEnqueue as isize,
    Filter = ExtensionPoint::Filter as isize,
    PostFilter = ExtensionPoint::PostFilter as isize,
    Score = ExtensionPoint::Score as isize,
    Reserve = ExtensionPoint::Reserve as isize,
    Permit = ExtensionPoint::Permit as isize,
    PreBind = ExtensionPoint::PreBind as isize,
    Bind = ExtensionPoint::Bind as isize,
    PostBind = ExtensionPoint::PostBind as isize,
    CycleDone = ExtensionPoint::CycleDone as isize,
    QueueSort = ExtensionPoint::QueueSort as isize,
    PlacementGenerate = ExtensionPoint::PlacementGenerate as isize,
    PlacementScore = ExtensionPoint::PlacementScore as isize,
    PlacementFeasible = ExtensionPoint::PlacementFeasible as isize,
    PodGroupPostFilter = ExtensionPoint::PodGroupPostFilter as isize,
    QueueingHints = ExtensionPoint::QueueingHints as isize,
}

/// A scheduler plugin over a state of the author's: what it is given functions
/// for is what it announces.
///
/// Functions are called one at a time, in the order in which the scheduler asked;
/// those that may change the state get it `&mut`. Names are kube-scheduler's.
pub struct Plugin<S> {
    state: Arc<Mutex<S>>,
    pub(crate) functions: Functions,
}

fn locked<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    // A function that panicked failed its attempt; the others go on.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the method that takes an author's function of these parameters.
macro_rules! takes {
    ($(#[$doc:meta])* $name:ident, &mut S $(, $argument:ident: $type:ty)* $(=> $answer:ty)?) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, function: impl Fn(&mut S $(, $type)*) $(-> $answer)? + Send + Sync + 'static) -> Self {
            let state = self.shared();
            self.functions.$name = Some(Box::new(move |$($argument: $type),*| function(&mut locked(&state) $(, $argument)*)));
            self
        }
    };
}

/// Makes the method that takes an author's function which may answer later.
macro_rules! takes_replying {
    ($(#[$doc:meta])* $name:ident, &mut S $(, $argument:ident: $type:ty)* => $answer:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name<R: Into<Reply<$answer>>>(
            mut self, function: impl Fn(&mut S $(, $type)*) -> R + Send + Sync + 'static,
        ) -> Self {
            let state = self.shared();
            self.functions.$name =
                Some(Box::new(move |$($argument: $type),*| function(&mut locked(&state) $(, $argument)*).into()));
            self
        }
    };
}

/// Makes the method that says something without a function.
macro_rules! says {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self) -> Self {
            self.functions.$name = true;
            self
        }
    };
}

impl<S: Send + 'static> Plugin<S> {
    /// A plugin with a name, a DNS label that profiles call it by, and a state.
    pub fn new(name: impl Into<String>, state: S) -> Self {
        Plugin { state: Arc::new(Mutex::new(state)), functions: Functions::new(name.into()) }
    }

    /// The state, for the plugin's own threads, timers and futures: while one
    /// holds it, no function of the plugin is called.
    #[must_use]
    pub fn shared(&self) -> Arc<Mutex<S>> {
        self.state.clone()
    }

    /// The plugin's own version, one word.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.functions.version = version.into();
        self
    }

    /// Takes over what profiles configure, as [`Arguments`](crate::Arguments) do.
    /// Without it a profile that gives arguments is refused.
    #[must_use]
    pub fn arguments(mut self, arguments: &(impl TakeArguments + Clone + 'static)) -> Self {
        self.functions.arguments = Arc::new(arguments.clone());
        self
    }

    takes! {
        /// A profile doesn't use the plugin any more.
        profile_removed, &mut S, profile: &str
    }
    takes_replying! {
        /// Whether the pod may enter the queue.
        pre_enqueue, &mut S, call: &Call, pod: &Pod => Result<(), Status>
    }
    takes! {
        /// A verdict on the pod before any node is looked at; [`Status::skip`]: there is nothing to filter.
        pre_filter, &mut S, call: &Call, pod: &Pod => Result<(), Status>
    }

    /// Whether the node can take the pod, else why not.
    #[must_use]
    pub fn filter(
        mut self,
        function: impl Fn(&S, &Pod, &Node) -> Result<(), Reason> + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.filter_nodes = Some(Box::new(move |pod, nodes| {
            let state = locked(&state);
            Ok(Verdicts::of_each(nodes, |index| function(&state, pod, nodes.at(index))))
        }));
        self.functions.filters_at_once = false;
        self
    }

    /// Verdicts on all nodes at once; where [`Nodes::asked`] is false the answer is ignored.
    #[must_use]
    pub fn filter_nodes(
        mut self,
        function: impl Fn(&S, &Pod, &Nodes<'_>) -> Verdicts + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.filter_nodes = Some(Box::new(move |pod, nodes| {
            let Verdicts { codes, reasons } = function(&locked(&state), pod, nodes);
            Ok(Verdicts { codes: nodes.entries_of(codes, "codes")?, reasons })
        }));
        self.functions.filters_at_once = true;
        self
    }

    takes! {
        /// Makes room somewhere after no node was left; the verdicts are those of all plugins together.
        post_filter, &mut S, call: &Call, pod: &Pod, nodes: &Nodes<'_>, verdicts: &Verdicts
            => Result<Nomination, Status>
    }

    /// How good the node is for the pod, 0 to 100 unless [`Plugin::normalization`] says otherwise.
    #[must_use]
    pub fn score(mut self, function: impl Fn(&S, &Pod, &Node) -> i64 + Send + Sync + 'static) -> Self {
        let state = self.shared();
        self.functions.score_nodes = Some(Box::new(move |pod, nodes| {
            let state = locked(&state);
            let mut points = vec![0; nodes.entries()];
            nodes.asked_entries().for_each(|(entry, index)| points[entry] = function(&state, pod, nodes.at(index)));
            Ok(Some(points))
        }));
        self
    }

    /// Scores of all nodes at once; `None`: no opinion on this pod.
    #[must_use]
    pub fn score_nodes<R: Into<Option<Vec<i64>>>>(
        mut self,
        function: impl Fn(&S, &Pod, &Nodes<'_>) -> R + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.score_nodes = Some(Box::new(move |pod, nodes| {
            let points: Option<Vec<i64>> = function(&locked(&state), pod, nodes).into();
            points.map(|points| nodes.entries_of(points, "scores")).transpose()
        }));
        self
    }

    /// What the scheduler does with the scores.
    #[must_use]
    pub fn normalization(mut self, normalization: Normalization) -> Self {
        self.functions.normalization = normalization;
        self
    }

    /// Sets aside what the pod will use on a node, under the call's key, and gives it
    /// back. Repeating a reservation changes nothing; keys that are not known and old
    /// attempts are to be ignored when something is given back. A patch accepts, and
    /// is written in `PreBind`'s place, which is then called after a lost connection only.
    #[must_use]
    pub fn reserve<R: Into<Reply<Result<Option<MetadataPatch>, Status>>>>(
        mut self,
        reserve: impl Fn(&mut S, &Call, &Pod, &Node) -> R + Send + Sync + 'static,
        unreserve: impl Fn(&mut S, &Call, &str) + Send + Sync + 'static,
    ) -> Self {
        let (state, same) = (self.shared(), self.shared());
        self.functions.reserve =
            Some(Box::new(move |call, pod, node| reserve(&mut locked(&state), call, pod, node).into()));
        self.functions.unreserve =
            Some(Box::new(move |call, node_name| unreserve(&mut locked(&same), call, node_name)));
        self
    }

    takes_replying! {
        /// Lets the pod go on, stops it, or makes it wait.
        permit, &mut S, call: &Call, pod: &Pod, node: &Node => Result<Permission, Status>
    }
    takes_replying! {
        /// Prepares the binding, or has annotations and labels written.
        pre_bind, &mut S, call: &Call, pod: &Pod, node: &Node => Result<Option<MetadataPatch>, Status>
    }
    takes_replying! {
        /// Writes the binding in the scheduler's place; [`Status::skip`] leaves it to the next binder.
        bind, &mut S, call: &Call, pod: &Pod, node: &Node, annotations: &BTreeMap<String, String>
            => Result<(), Status>
    }
    takes! {
        /// The pod was bound to that node.
        post_bind, &mut S, call: &Call, node_name: &str
    }
    takes! {
        /// What became of an attempt; what was kept for it can go.
        cycle_done, &mut S, call: &Call, outcome: &Outcome
    }

    /// Whether the event may let the pod fit, which this plugin rejected.
    #[must_use]
    pub fn queueing_hint(mut self, function: impl Fn(&S, &Pod, &Event) -> bool + Send + Sync + 'static) -> Self {
        let state = self.shared();
        self.functions.queueing_hints = Some(Box::new(move |pods, events| {
            let state = locked(&state);
            let row = |event| pods.iter().map(|pod| function(&state, pod, event)).collect();
            events.iter().map(row).collect()
        }));
        self
    }

    /// The same for all pairs at once: a row an event, a column a pod.
    #[must_use]
    pub fn queueing_hints(
        mut self,
        function: impl Fn(&S, &[Arc<Pod>], &[Event]) -> Vec<Vec<bool>> + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.queueing_hints = Some(Box::new(move |pods, events| function(&locked(&state), pods, events)));
        self
    }

    /// Where the pod stands in the queue, the lowest key first. Asked once for each
    /// version of the pod; [`Requeue::sort_keys`] gives other keys later. A failure is
    /// logged, and the pod has the key 0.
    #[must_use]
    pub fn sort_key<K: Into<SortKey>>(
        mut self,
        function: impl Fn(&mut S, &Pod) -> K + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.sort_key = Some(Box::new(move |pod| function(&mut locked(&state), pod).into()));
        self
    }

    takes! {
        /// Pods that [`Plugin::sort_key`] was asked about wait no more, by UID.
        pods_left, &mut S, uids: &[String]
    }
    takes! {
        /// The profile's pods that [`Plugin::sort_key`] was asked about are to be forgotten: all that
        /// wait are asked about anew.
        queue_reset, &mut S, profile: &str
    }

    /// Which sets of nodes the group may go to as a whole, in the order in which they
    /// are tried; the pod is the first of the group's. [`Status::skip`]: no opinion.
    /// Nodes that were not asked about are left out, and so is a set that has no node then.
    #[must_use]
    pub fn generate_placements(
        mut self,
        function: impl Fn(&S, &PodGroup, &Pod, &Nodes<'_>) -> Result<Vec<Placement>, Status> + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.generate_placements =
            Some(Box::new(move |group, pod, nodes| function(&locked(&state), group, pod, nodes)));
        self
    }

    /// Scores of the placements in which the group fits, each by itself, 0 to 100 unless
    /// [`Plugin::normalization`] says otherwise; `None`: no opinion.
    #[must_use]
    pub fn score_placements<R: Into<Option<Vec<i64>>>>(
        mut self,
        function: impl Fn(&S, &PodGroup, &Pod, &Nodes<'_>, &[ProposedPlacement<'_>]) -> R + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.score_placements = Some(Box::new(move |group, pod, nodes, proposed| {
            function(&locked(&state), group, pod, nodes, proposed).into()
        }));
        self
    }

    /// Whether the group may go as it stands; its other pods are tried all the same.
    /// [`Code::Wait`](crate::Code::Wait): not yet; [`Status::unschedulable`]: it may not, however many
    /// of the remaining pods find a node. The answer counts for the attempt, wherever the pods go.
    #[must_use]
    pub fn placement_feasible(
        mut self,
        function: impl Fn(&S, &PodGroup, &Pod, PlacementProgress) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.placement_feasible =
            Some(Box::new(move |group, pod, progress| function(&locked(&state), group, pod, progress)));
        self
    }

    /// Evictions for a group that fits nowhere, the best first, at most 16: the scheduler has the
    /// first carried out by which the group fits. None: room is on its way. The verdicts are those on
    /// the first of its pods that found no node.
    #[must_use]
    pub fn pod_group_post_filter(
        mut self,
        function: impl Fn(&S, &PodGroup, &Pod, &Nodes<'_>, &Verdicts) -> Result<Vec<GroupPreemption>, Status>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.pod_group_post_filter =
            Some(Box::new(move |group, pod, nodes, verdicts| function(&locked(&state), group, pod, nodes, verdicts)));
        self
    }

    /// Cluster events that matter to rejected pods.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = EventInterest>) -> Self {
        self.functions.events.extend(events);
        self
    }

    /// The plugin's own way to speak to the scheduler.
    #[must_use]
    pub fn requeue(mut self, requeue: &Requeue) -> Self {
        self.functions.requeue = Some(requeue.clone());
        self
    }

    /// All that the plugin knows of time: it reads no other, and sets no timers but by
    /// it. A simulation plays such a plugin in virtual time.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        self.functions.clock = Some(clock.clone());
        self
    }

    says! {
        /// Mirrors placed and assumed pods.
        wants_pods
    }
    says! {
        /// A mirrored pod's status may be an old one: pods that changed in nothing else are not brought again.
        pods_without_status
    }
    says! {
        /// Mirrors nominated pods too.
        wants_nominations
    }
    says! {
        /// Verdict and score of a node depend on the pod, the node and the pods on it alone.
        node_local
    }
    says! {
        /// Evicting pods changes no verdict, though the plugin follows pods: preemption makes
        /// no room where it turns a node down, and no hook sees pods that are removed in an overlay only.
        without_overlays
    }
    says! {
        /// Score must see exactly the nodes that all filters left.
        score_needs_feasible
    }

    /// Narrows the mirrored pods to those that request one of these.
    #[must_use]
    pub fn pod_resources<T: Into<String>>(mut self, resources: impl IntoIterator<Item = T>) -> Self {
        self.functions.pod_resources.extend(resources.into_iter().map(Into::into));
        self
    }

    /// A further kind to mirror.
    #[must_use]
    pub fn resource(mut self, resource: WatchedResource) -> Self {
        self.functions.resources.push(resource);
        self
    }

    takes! {
        /// All nodes, pods and objects are forgotten and the present ones follow. With
        /// `true` another run of the scheduler began: its attempts are void, and so is what is held for them.
        state_reset, &mut S, epoch_changed: bool
    }
    takes! {
        /// A full transfer is complete.
        state_settled, &mut S
    }
    takes! {
        /// A new node at index n, or a changed one at its index.
        node_upserted, &mut S, index: usize, node: &Node
    }
    takes! {
        /// The node at the first index went; the one at the second, the last, moved there.
        node_removed, &mut S, index: usize, last: usize
    }
    takes! {
        /// A pod counts on a node, or changed.
        pod_upserted, &mut S, placed: &PlacedPod
    }
    takes! {
        /// A pod no longer counts.
        pod_removed, &mut S, placed: &PlacedPod
    }
    takes! {
        /// An object of a watched kind went.
        object_removed, &mut S, key: &ObjectKey
    }

    /// An object of a watched kind came or changed, as JSON. An error says that it
    /// can't be used; the state is then asked for anew.
    #[must_use]
    pub fn object_upserted<E: Display>(
        mut self,
        function: impl Fn(&mut S, &ObjectKey, &[u8]) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        let state = self.shared();
        self.functions.object_upserted = Some(Box::new(move |key, object| {
            function(&mut locked(&state), key, object).map_err(|problem| problem.to_string())
        }));
        self
    }

    takes! {
        /// What the plugin counts itself, shown at `/metrics` behind what the SDK counts.
        metrics, &mut S => Vec<Metric>
    }

    /// How things stand inside, shown at `/state`.
    #[must_use]
    pub fn state<T: Serialize>(mut self, function: impl Fn(&S) -> T + Send + Sync + 'static) -> Self {
        let state = self.shared();
        self.functions.state = Some(Box::new(move || {
            serde_json::to_value(function(&locked(&state))).unwrap_or(serde_json::Value::Null)
        }));
        self
    }

    /// JSON pointers of all pod fields that the verdicts depend on; none: the answer
    /// is equal for all pods. Without it every field may matter.
    #[must_use]
    pub fn pod_fields<T: Into<String>>(mut self, fields: impl IntoIterator<Item = T>) -> Self {
        self.functions.pod_fields = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// The time wanted for a call.
    #[must_use]
    pub fn wanted_deadline(mut self, deadline: Duration) -> Self {
        self.functions.wanted_deadline = Some(deadline);
        self
    }

    /// The time wanted at a single point.
    #[must_use]
    pub fn wanted_deadline_at(mut self, point: Point, deadline: Duration) -> Self {
        self.functions.wanted_deadlines.push((point, deadline));
        self
    }
}

impl Functions {
    fn new(name: String) -> Self {
        Functions {
            name,
            version: "0.0.0".into(),
            arguments: Arc::new(NoArguments),
            profile_removed: None,
            pre_enqueue: None,
            pre_filter: None,
            filter_nodes: None,
            filters_at_once: false,
            without_overlays: false,
            post_filter: None,
            score_nodes: None,
            normalization: Normalization::None,
            reserve: None,
            unreserve: None,
            permit: None,
            pre_bind: None,
            bind: None,
            post_bind: None,
            cycle_done: None,
            queueing_hints: None,
            sort_key: None,
            pods_left: None,
            queue_reset: None,
            generate_placements: None,
            score_placements: None,
            placement_feasible: None,
            pod_group_post_filter: None,
            events: Vec::new(),
            requeue: None,
            clock: None,
            wants_pods: false,
            pod_resources: Vec::new(),
            pods_without_status: false,
            wants_nominations: false,
            resources: Vec::new(),
            state_reset: None,
            state_settled: None,
            node_upserted: None,
            node_removed: None,
            pod_upserted: None,
            pod_removed: None,
            object_upserted: None,
            object_removed: None,
            metrics: None,
            state: None,
            pod_fields: None,
            node_local: false,
            score_needs_feasible: false,
            wanted_deadline: None,
            wanted_deadlines: Vec::new(),
        }
    }

    /// What the scheduler could not work with.
    ///
    /// # Errors
    /// All that is wrong, in one text.
    pub fn validate(&self) -> Result<(), String> {
        let mirrors_pods = self.wants_pods || self.wants_nominations;
        let hooks = self.pod_upserted.is_some() || self.pod_removed.is_some();
        let hears_of_the_queue = self.pods_left.is_some() || self.queue_reset.is_some();
        let checks = [
            (!is_dns_label(&self.name), "the name is no DNS label"),
            (hooks && !mirrors_pods, "pod_upserted and pod_removed need wants_pods or wants_nominations"),
            (
                !self.pod_resources.is_empty() && !self.wants_pods,
                "pod_resources narrow wants_pods, which is not said",
            ),
            (hears_of_the_queue && self.sort_key.is_none(), "pods_left and queue_reset need sort_key"),
            (self.wanted_deadline.is_some_and(|wanted| wanted.is_zero()), "wanted_deadline is no time"),
            (self.wanted_deadlines.iter().any(|(_, wanted)| wanted.is_zero()), "wanted_deadline_at is no time"),
        ];
        let problems: Vec<_> = checks.iter().filter(|(wrong, _)| *wrong).map(|(_, problem)| *problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(format!("plugin {:?}: {}", self.name, problems.join("; "))) }
    }
}

fn is_dns_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}
