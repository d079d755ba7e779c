//! The scheduler's side of the protocol.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Serialize;
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status as RpcStatus, Streaming};

use super::cluster::{Cluster, encoded, number};
use crate::bits::{pack_bits, pack_indices};
use crate::clock::at;
use crate::events::Event;
use crate::outcomes::{Code, CycleOutcome, MetadataPatch, Nomination, Permission, Reason, Status};
use crate::pb::identity_service_client::IdentityServiceClient;
use crate::pb::queueing_service_client::QueueingServiceClient;
use crate::pb::scheduling_service_client::SchedulingServiceClient;
use crate::pb::state_service_client::StateServiceClient;
use crate::pb::{self, hint::Queue, scores::Values, sync_request, sync_response};
use crate::plugin::Plugin;
use crate::serving::{Running, Server};
use crate::vectors::unpack_verdicts;

/// The profile that a [`Host`] configures.
pub const PROFILE: &str = "default-scheduler";

const PATIENCE: Duration = Duration::from_secs(10);
const MAX_ALONE: usize = 32;

static HOSTS: AtomicU32 = AtomicU32::new(0);

type Asking = SchedulingServiceClient<InterceptedService<Channel, Traced>>;

/// The plugin's word on a pod, and on each node that it turned down.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// [`Code::Success`] without reasons: see the nodes.
    pub status: Status,
    /// Why, by node.
    pub rejected: BTreeMap<String, Reason>,
    names: Vec<String>,
}

impl Verdict {
    /// Whether the node can take the pod.
    #[must_use]
    pub fn passes(&self, node_name: &str) -> bool {
        self.passing().contains(&node_name)
    }

    /// The nodes that can take the pod, by index.
    #[must_use]
    pub fn passing(&self) -> Vec<&str> {
        let fits = matches!(self.status.code, Code::Success | Code::Skip);
        let names = self.names.iter().filter(|name| fits && !self.rejected.contains_key(*name));
        names.map(String::as_str).collect()
    }

    /// Why the node is turned down, and what is said of the pod as a whole.
    fn about(&self, node_name: &str) -> (&Status, Option<&Reason>) {
        (&self.status, self.rejected.get(node_name))
    }
}

/// One connection to a plugin that is served in this process, with a cluster of its
/// own to show it. Every method sends the changes made to the cluster before it
/// asks, and panics where the plugin breaks the protocol. The filters and scores ask
/// about the nodes together, and about each alone as the scheduler does once a node
/// has changed; they panic on an ERROR, and where a node's answer is another one alone.
pub struct Host {
    /// What the plugin is shown.
    pub cluster: Cluster,
    /// Where the plugin is served.
    pub address: String,
    /// Names the host's run; change it before [`Host::sync`] to be another one.
    pub epoch: String,
    /// The W3C context that calls carry.
    pub traceparent: Option<String>,
    /// Lists the indices of the nodes asked about, where a call names some, instead
    /// of sending a bit for each node. A scheduler does so where they are few of many.
    pub lists_candidates: bool,
    /// Asks about no node alone after all were asked about together: for plugins that
    /// count their calls.
    pub once: bool,
    needs_feasible: bool,
    runtime: Runtime,
    running: Option<Running>,
    folder: PathBuf,
    pub(crate) channel: Channel,
    attempts: HashMap<String, u32>,
    stream: Option<(UnboundedSender<pb::SyncRequest>, Streaming<pb::SyncResponse>)>,
}

// That every method panics where the protocol is broken stands above, once.
#[allow(clippy::missing_panics_doc)]
impl Host {
    /// Serves the plugin on a socket of its own, shows it the nodes, and stops it
    /// when the host is dropped.
    pub fn run<S: Send + 'static, N: Into<Node>>(plugin: Plugin<S>, nodes: impl IntoIterator<Item = N>) -> Self {
        Host::started(plugin, None::<&()>, nodes)
    }

    /// Does so with arguments: anything that encodes to their JSON.
    pub fn run_with<S: Send + 'static, N: Into<Node>>(
        plugin: Plugin<S>,
        arguments: &impl Serialize,
        nodes: impl IntoIterator<Item = N>,
    ) -> Self {
        Host::started(plugin, Some(arguments), nodes)
    }

    fn started<S: Send + 'static, N: Into<Node>>(
        plugin: Plugin<S>,
        arguments: Option<&impl Serialize>,
        nodes: impl IntoIterator<Item = N>,
    ) -> Self {
        let mut host = Host::serve(plugin);
        nodes.into_iter().for_each(|node| host.cluster.put_node(node));
        host.handshake();
        let problems = host.configure(arguments);
        assert!(problems.is_empty(), "arguments: {problems:?}");
        host.sync();
        host
    }

    /// Serves the plugin, and connects; nothing is said yet.
    ///
    /// # Panics
    /// It can't be served.
    #[must_use]
    pub fn serve<S: Send + 'static>(plugin: Plugin<S>) -> Self {
        let number = HOSTS.fetch_add(1, Ordering::Relaxed);
        // A test's own folder may have too long a name for a socket.
        let folder = env::temp_dir().join(format!("berth-{}-{number}", process::id()));
        let address = format!("unix:{}", folder.join("plugin.sock").display());
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (running, channel) = runtime.block_on(async {
            let server = Server::new(plugin, &address).expect("a plugin without contradictions");
            let running = server.grace(Duration::from_secs(1)).start().await;
            let channel = Endpoint::from_shared(address.clone()).expect("an address").connect().await;
            (running.expect("a plugin that can be served"), channel.expect("a connection"))
        });
        Host {
            cluster: Cluster::default(),
            address,
            epoch: format!("test-{}-{number}", process::id()),
            traceparent: None,
            lists_candidates: false,
            once: false,
            needs_feasible: false,
            runtime,
            running: Some(running),
            folder,
            channel,
            attempts: HashMap::new(),
            stream: None,
        }
    }

    /// Shakes hands; the extension points that the plugin announces, as on the wire.
    pub fn handshake(&mut self) -> Vec<&'static str> {
        let request = pb::HandshakeRequest {
            host_name: "testing".into(),
            host_version: "1".into(),
            supported_versions: vec![1],
        };
        let mut identity = IdentityServiceClient::new(self.channel.clone());
        let response = self.wait(async move { identity.handshake(request).await });
        let capabilities = response.capabilities.unwrap_or_default();
        self.needs_feasible = capabilities.score_needs_feasible;
        let points = capabilities.extension_points;
        let points = points.into_iter().filter_map(|point| pb::ExtensionPoint::try_from(point).ok());
        points.map(|point| point.as_str_name()).collect()
    }

    /// Configures the profile, and gives the plugin's errors.
    pub fn configure(&mut self, arguments: Option<&impl Serialize>) -> Vec<String> {
        self.configured(arguments, false)
    }

    /// Configures the profile's shadow, and gives the plugin's errors.
    pub fn configure_shadow(&mut self, arguments: Option<&impl Serialize>) -> Vec<String> {
        self.configured(arguments, true)
    }

    fn configured(&mut self, arguments: Option<&impl Serialize>, shadow: bool) -> Vec<String> {
        let request = pb::ConfigureRequest {
            protocol_version: 1,
            profile: PROFILE.into(),
            arguments: arguments.map(|arguments| encoded(arguments).into()),
            shadow,
            ..Default::default()
        };
        let mut identity = IdentityServiceClient::new(self.channel.clone());
        self.wait(async move { identity.configure(request).await }).errors
    }

    /// Opens the state stream and transfers everything, as a host does that starts over.
    pub fn sync(&mut self) {
        self.open();
        for message in self.cluster.transfer(&self.epoch) {
            self.send(message);
        }
        self.acknowledged();
    }

    /// Opens the state stream and goes on from what the plugin holds.
    ///
    /// # Panics
    /// It holds nothing of this run.
    pub fn resume(&mut self) {
        let held = self.open();
        assert_eq!(self.epoch, held.epoch, "the epoch that is held");
        let begin = pb::Begin { epoch: self.epoch.clone(), resume_generation: Some(held.generation) };
        self.send(pb::SyncRequest { body: Some(sync_request::Body::Begin(begin)) });
        self.acknowledged();
    }

    /// Sends what changed in the cluster, if anything did.
    pub fn update(&mut self) {
        if self.cluster.pending.is_empty() {
            return;
        }
        let delta = self.cluster.step();
        self.send(pb::SyncRequest { body: Some(sync_request::Body::Delta(delta)) });
        self.acknowledged();
    }

    /// Has the plugin's clock stand at that time, to the microsecond; when its next
    /// timer is due, if one is. What is due by then runs first, each timer at its time.
    ///
    /// # Panics
    /// The plugin has no clock, or the time is before 1970.
    pub fn set_time(&mut self, when: SystemTime) -> Option<SystemTime> {
        let since = when.duration_since(UNIX_EPOCH).expect("a time after 1970");
        let unix_micros = i64::try_from(since.as_micros()).expect("a time that is not too far away");
        self.send(pb::SyncRequest { body: Some(sync_request::Body::Time(pb::Time { unix_micros })) });
        match self.heard().body {
            Some(sync_response::Body::TimeReached(reached)) if reached.unix_micros == unix_micros => {
                reached.wake_at_unix_micros.map(at)
            }
            other => panic!("expected the time to be held, got {other:?}"),
        }
    }

    fn open(&mut self) -> pb::Held {
        let (sender, requests) = unbounded_channel();
        let mut state = StateServiceClient::new(self.channel.clone());
        let stream = self.wait(async move { state.sync(UnboundedReceiverStream::new(requests)).await });
        self.stream = Some((sender, stream));
        match self.heard().body {
            Some(sync_response::Body::Held(held)) => held,
            other => panic!("expected what is held, got {other:?}"),
        }
    }

    fn send(&mut self, message: pb::SyncRequest) {
        let (sender, _) = self.stream.as_ref().expect("a state stream");
        sender.send(message).expect("a state stream that is open");
    }

    fn acknowledged(&mut self) {
        let answer = self.heard();
        let generation = match &answer.body {
            Some(sync_response::Body::Ack(ack)) => ack.generation,
            _ => 0,
        };
        assert!(generation >= self.cluster.generation, "expected an Ack, got {answer:?}");
    }

    fn heard(&mut self) -> pb::SyncResponse {
        let (_, stream) = self.stream.as_mut().expect("a state stream");
        let heard = self.runtime.block_on(async { timeout(PATIENCE, stream.message()).await });
        heard.expect("an answer in time").expect("a state stream").expect("a state stream that is open")
    }

    /// Whether the pod may enter the queue.
    pub fn pre_enqueue(&mut self, pod: impl Into<Pod>) -> Status {
        let request = pb::PreEnqueueRequest { call: Some(self.call(pod)) };
        status_of(self.ask(|mut plugin| async move { plugin.pre_enqueue(request).await }).status)
    }

    /// Asks about all nodes.
    pub fn filter(&mut self, pod: impl Into<Pod>) -> Verdict {
        self.filtered(pod, None)
    }

    /// Asks about the nodes of these names.
    pub fn filter_these(&mut self, pod: impl Into<Pod>, node_names: &[&str]) -> Verdict {
        self.filtered(pod, Some(node_names))
    }

    /// What [`Plugin::filter`] and the other filters say of the pod.
    pub fn filter_status(&mut self, pod: impl Into<Pod>) -> Status {
        self.update();
        let request = pb::FilterRequest { call: Some(self.call(pod)), candidates: None };
        status_of(self.ask(|mut plugin| async move { plugin.filter(request).await }).status)
    }

    fn filtered(&mut self, pod: impl Into<Pod>, names: Option<&[&str]>) -> Verdict {
        let pod = pod.into();
        let together = self.asked_to_filter(pod.clone(), names);
        for name in self.alone(&together.names) {
            let alone = self.asked_to_filter(pod.clone(), Some(&[&name]));
            assert_eq!(together.about(&name), alone.about(&name), "{name} asked about together and alone");
        }
        together
    }

    fn asked_to_filter(&mut self, pod: Pod, names: Option<&[&str]>) -> Verdict {
        self.update();
        let request = pb::FilterRequest { call: Some(self.call(pod)), candidates: self.candidates(names) };
        let response = self.ask(|mut plugin| async move { plugin.filter(request).await });
        self.verdict(response, names)
    }

    /// The scores of all nodes; none: no opinion.
    pub fn score(&mut self, pod: impl Into<Pod>) -> Option<BTreeMap<String, i64>> {
        self.scored(pod, None)
    }

    /// The scores of the nodes of these names; none: no opinion.
    pub fn score_these(&mut self, pod: impl Into<Pod>, node_names: &[&str]) -> Option<BTreeMap<String, i64>> {
        self.scored(pod, Some(node_names))
    }

    fn scored(&mut self, pod: impl Into<Pod>, names: Option<&[&str]>) -> Option<BTreeMap<String, i64>> {
        let pod = pod.into();
        let together = self.asked_to_score(pod.clone(), names)?;
        let scored: Vec<_> = together.keys().cloned().collect();
        for name in self.alone(if self.needs_feasible { &[] } else { &scored }) {
            let alone = self.asked_to_score(pod.clone(), Some(&[&name])).unwrap_or_default();
            assert_eq!(together.get(&name), alone.get(&name), "{name} asked about together and alone");
        }
        Some(together)
    }

    fn asked_to_score(&mut self, pod: Pod, names: Option<&[&str]>) -> Option<BTreeMap<String, i64>> {
        self.update();
        let request = pb::ScoreRequest { call: Some(self.call(pod)), candidates: self.candidates(names) };
        let response = self.ask(|mut plugin| async move { plugin.score(request).await });
        self.scores(response, names, |name| names.is_none_or(|names| names.contains(&name)))
    }

    /// Asks both in one round trip; scores are those of the nodes that pass.
    pub fn filter_score(&mut self, pod: impl Into<Pod>) -> (Verdict, BTreeMap<String, i64>) {
        self.filtered_and_scored(pod, None)
    }

    /// Does so about the nodes of these names.
    pub fn filter_score_these(
        &mut self,
        pod: impl Into<Pod>,
        node_names: &[&str],
    ) -> (Verdict, BTreeMap<String, i64>) {
        self.filtered_and_scored(pod, Some(node_names))
    }

    fn filtered_and_scored(
        &mut self,
        pod: impl Into<Pod>,
        names: Option<&[&str]>,
    ) -> (Verdict, BTreeMap<String, i64>) {
        let pod = pod.into();
        let (together, scores) = self.asked_for_both(pod.clone(), names);
        for name in self.alone(&together.names) {
            let (alone, points) = self.asked_for_both(pod.clone(), Some(&[&name]));
            assert_eq!(together.about(&name), alone.about(&name), "{name} asked about together and alone");
            assert_eq!(scores.get(&name), points.get(&name), "{name} asked about together and alone");
        }
        (together, scores)
    }

    fn asked_for_both(&mut self, pod: Pod, names: Option<&[&str]>) -> (Verdict, BTreeMap<String, i64>) {
        self.update();
        let request = pb::FilterScoreRequest { call: Some(self.call(pod)), candidates: self.candidates(names) };
        let response = self.ask(|mut plugin| async move { plugin.filter_score(request).await });
        let verdict = self.verdict(response.filter.unwrap_or_default(), names);
        let scores = response.score.and_then(|score| self.scores(score, names, |name| verdict.passes(name)));
        (verdict, scores.unwrap_or_default())
    }

    /// Asks about one node as it would be without those pods, by UID.
    ///
    /// # Errors
    /// Why the node is turned down all the same.
    pub fn filter_without(&mut self, pod: impl Into<Pod>, node_name: &str, removed: &[&str]) -> Result<(), Reason> {
        self.update();
        let overlay = pb::Overlay {
            node_index: number(self.cluster.index(node_name)),
            removed_pod_uids: removed.iter().map(ToString::to_string).collect(),
            added_pods: Vec::new(),
        };
        let request = pb::FilterOverlaysRequest { call: Some(self.call(pod)), overlays: vec![overlay] };
        let response = self.ask(|mut plugin| async move { plugin.filter_overlays(request).await });
        succeeded("FilterOverlays", &status_of(response.status));
        let mut verdicts = unpack_verdicts(response.verdicts.as_ref(), 1).expect("one verdict");
        match verdicts.codes[0] {
            0 => Ok(()),
            code => Err(verdicts.reasons.swap_remove(usize::from(code) - 1)),
        }
    }

    /// Asks for room, where every node was turned down for that reason.
    ///
    /// # Errors
    /// Why there is none.
    pub fn post_filter(&mut self, pod: impl Into<Pod>, reason: &Reason) -> Result<Nomination, Status> {
        self.update();
        let row = pb::Reason { code: reason.code as i32, text: reason.text.to_string() };
        let verdicts = pb::Verdicts { codes: Some(pb::verdicts::Codes::All(1)), reasons: vec![row] };
        let request = pb::PostFilterRequest { call: Some(self.call(pod)), verdicts: Some(verdicts) };
        let response = self.ask(|mut plugin| async move { plugin.post_filter(request).await });
        let status = status_of(response.status);
        match response.nominated_node_name {
            _ if status.code != Code::Success => Err(status),
            None => Ok(Nomination::Keep),
            Some(name) if name.is_empty() => Ok(Nomination::Clear),
            Some(name) => Ok(Nomination::Node { name, victims: response.victim_uids }),
        }
    }

    /// Reserves as the pod's present attempt.
    pub fn reserve(&mut self, pod: impl Into<Pod>, node_name: &str) -> Status {
        self.update();
        let request = pb::ReserveRequest { call: Some(self.call(pod)), node_name: node_name.into() };
        status_of(self.ask(|mut plugin| async move { plugin.reserve(request).await }).status)
    }

    /// Takes the attempt back; the next one has a new number.
    pub fn unreserve(&mut self, pod: impl Into<Pod>, node_name: &str) {
        let pod = pod.into();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let request = pb::UnreserveRequest { call: Some(self.call(pod)), node_name: node_name.into() };
        self.ask(|mut plugin| async move { plugin.unreserve(request).await });
        *self.attempts.entry(uid).or_insert(1) += 1;
    }

    /// Asks for leave to bind.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn permit(&mut self, pod: impl Into<Pod>, node_name: &str) -> Result<Permission, Status> {
        self.update();
        let request = pb::PermitRequest { call: Some(self.call(pod)), node_name: node_name.into() };
        let response = self.ask(|mut plugin| async move { plugin.permit(request).await });
        let status = status_of(response.status);
        let limit = response.timeout.and_then(|timeout| Duration::try_from(timeout).ok());
        match status.code {
            Code::Success => Ok(Permission::Granted),
            Code::Wait => Ok(Permission::Wait(limit.expect("WAIT says for how long"))),
            _ => Err(status),
        }
    }

    /// The metadata that the plugin wants written.
    ///
    /// # Errors
    /// Why the pod is not to be bound.
    pub fn pre_bind(&mut self, pod: impl Into<Pod>, node_name: &str) -> Result<MetadataPatch, Status> {
        self.update();
        let request = pb::PreBindRequest { call: Some(self.call(pod)), node_name: node_name.into() };
        let response = self.ask(|mut plugin| async move { plugin.pre_bind(request).await });
        let status = status_of(response.status);
        if status.code != Code::Success {
            return Err(status);
        }
        let patch = response.metadata_patch.map(|patch| serde_json::from_slice(&patch).expect("a patch"));
        Ok(patch.unwrap_or_default())
    }

    /// Asks to write the binding.
    pub fn bind(&mut self, pod: impl Into<Pod>, node_name: &str) -> Status {
        self.update();
        let (call, annotations) = (Some(self.call(pod)), BTreeMap::new());
        let request = pb::BindRequest { call, node_name: node_name.into(), annotations };
        status_of(self.ask(|mut plugin| async move { plugin.bind(request).await }).status)
    }

    /// Says that the pod was bound.
    pub fn post_bind(&mut self, pod: impl Into<Pod>, node_name: &str) {
        let request = pb::PostBindRequest { call: Some(self.call(pod)), node_name: node_name.into() };
        self.ask(|mut plugin| async move { plugin.post_bind(request).await });
    }

    /// Says how the attempt ended.
    pub fn cycle_done(&mut self, pod: impl Into<Pod>, result: CycleOutcome, node_name: Option<&str>) {
        let request = pb::CycleDoneRequest {
            call: Some(self.call(pod)),
            outcome: result as i32,
            node_name: node_name.map(ToString::to_string),
            rejected_by_plugin: result == CycleOutcome::Unschedulable,
        };
        self.ask(|mut plugin| async move { plugin.cycle_done(request).await });
    }

    /// For each event, whether each pod is worth another attempt.
    pub fn hints<P: Into<Pod>>(&mut self, pods: impl IntoIterator<Item = P>, events: &[Event]) -> Vec<Vec<bool>> {
        let pods: Vec<_> = pods.into_iter().filter_map(|pod| self.call(pod).pod).collect();
        let count = pods.len();
        let event = |event: &Event| pb::ClusterEvent {
            resource: event.resource.clone(),
            action: event.action as i32,
            old_object: event.old.clone().map(Into::into),
            new_object: event.new.clone().map(Into::into),
        };
        let events = events.iter().map(event).collect();
        let request = pb::QueueingHintsRequest { profile: PROFILE.into(), events, pods };
        let mut queueing = QueueingServiceClient::new(self.channel.clone());
        let response = self.wait(async move { queueing.queueing_hints(request).await });
        let row = |hint: &pb::Hint| match &hint.queue {
            Some(Queue::All(all)) => vec![*all; count],
            Some(Queue::Pods(bits)) => (0..count).map(|at| bits[at >> 3] >> (at & 7) & 1 == 1).collect(),
            other => panic!("an answer that the SDK doesn't give: {other:?}"),
        };
        response.hints.iter().map(row).collect()
    }

    /// The head of a call about a pod, with its object.
    pub(crate) fn call(&self, pod: impl Into<Pod>) -> pb::Call {
        let pod = pod.into();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let reference = pb::PodRef {
            attempt: self.attempts.get(&uid).copied().unwrap_or(1),
            uid,
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            object: Some(encoded(&pod).into()),
        };
        pb::Call {
            epoch: self.epoch.clone(),
            generation: self.cluster.generation,
            deltas: Vec::new(),
            profile: PROFILE.into(),
            pod: Some(reference),
        }
    }

    pub(super) fn candidates(&self, names: Option<&[&str]>) -> Option<pb::Candidates> {
        let names = names?;
        let asked: Vec<bool> = self.cluster.names.iter().map(|name| names.contains(&name.as_str())).collect();
        if !self.lists_candidates {
            return Some(pb::Candidates { bitmap: pack_bits(&asked), indices: None });
        }
        let indices: Vec<u32> = (0..).zip(asked).filter(|(_, asked)| *asked).map(|(index, _)| index).collect();
        Some(pb::Candidates { indices: Some(pack_indices(&indices)), ..Default::default() })
    }

    /// The names behind the entries of an answer.
    fn entries(&self, asked: Option<&[&str]>) -> Vec<String> {
        let listed =
            |name: &&String| !self.lists_candidates || asked.is_none_or(|names| names.contains(&name.as_str()));
        self.cluster.names.iter().filter(listed).cloned().collect()
    }

    fn verdict(&self, response: pb::FilterResponse, asked: Option<&[&str]>) -> Verdict {
        assert_eq!(self.cluster.generation, response.generation, "the generation that answered");
        let status = status_of(response.status);
        assert_ne!(Code::Error, status.code, "Filter answered ERROR: {}", status.reasons.join("; "));
        let succeeded = status.code == Code::Success;
        assert_eq!(succeeded, response.verdicts.is_some(), "verdicts go with a success and nothing else");
        let entries = self.entries(asked);
        let verdicts = unpack_verdicts(response.verdicts.as_ref(), entries.len()).expect("a code for each node");
        let coded = entries.iter().zip(&verdicts.codes).filter(|(_, code)| **code > 0);
        let reason = |code: u8| verdicts.reasons[usize::from(code) - 1].clone();
        let rejected = coded.map(|(name, code)| (name.clone(), reason(*code))).collect();
        let names = match asked {
            Some(names) => names.iter().map(ToString::to_string).collect(),
            None => self.cluster.names.clone(),
        };
        Verdict { status, rejected, names }
    }

    /// The nodes that are asked about one by one, of all that were asked about.
    fn alone(&self, names: &[String]) -> Vec<String> {
        let most = if self.once { 0 } else { MAX_ALONE };
        names.iter().take(most).cloned().collect()
    }

    fn scores(
        &self,
        response: pb::ScoreResponse,
        asked: Option<&[&str]>,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<BTreeMap<String, i64>> {
        let status = status_of(response.status);
        if status.code == Code::Skip {
            return None;
        }
        succeeded("Score", &status);
        let names = self.entries(asked);
        let points = unpack_scores(response.scores.and_then(|scores| scores.values), names.len());
        assert_eq!(names.len(), points.len(), "one score a node");
        Some(names.into_iter().zip(points).filter(|(name, _)| wanted(name)).collect())
    }

    pub(super) fn ask<R, F: Future<Output = Result<Response<R>, RpcStatus>>>(
        &self,
        call: impl FnOnce(Asking) -> F,
    ) -> R {
        let traced = Traced(self.traceparent.clone());
        self.wait(call(SchedulingServiceClient::with_interceptor(self.channel.clone(), traced)))
    }

    pub(super) fn wait<R>(&self, answer: impl Future<Output = Result<Response<R>, RpcStatus>>) -> R {
        self.until(answer).expect("a call that succeeds").into_inner()
    }

    /// What came of a call.
    pub(crate) fn until<R>(&self, answer: impl Future<Output = R>) -> R {
        self.runtime.block_on(async { timeout(PATIENCE, answer).await }).expect("an answer in time")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stream = None;
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
        // A folder that is left over harms no other test.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Adds the trace context to a call.
#[derive(Clone)]
pub(super) struct Traced(Option<String>);

impl Interceptor for Traced {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, RpcStatus> {
        if let Some(value) = self.0.as_ref().and_then(|parent| parent.parse().ok()) {
            request.metadata_mut().insert("traceparent", value);
        }
        Ok(request)
    }
}

pub(super) fn unpack_scores(values: Option<Values>, count: usize) -> Vec<i64> {
    match values.expect("scores") {
        Values::Uint8(bytes) => bytes.iter().map(|point| i64::from(*point)).collect(),
        Values::Int32(bytes) => bytes.as_chunks().0.iter().map(|part| i64::from(i32::from_le_bytes(*part))).collect(),
        Values::Int64(bytes) => bytes.as_chunks().0.iter().map(|part| i64::from_le_bytes(*part)).collect(),
        Values::All(all) => vec![all; count],
    }
}

pub(super) fn status_of(status: Option<pb::Status>) -> Status {
    let status = status.expect("a status");
    Status { code: Code::of(status.code), reasons: status.reasons }
}

fn succeeded(what: &str, status: &Status) {
    assert_eq!(Code::Success, status.code, "{what}: {:?}", status.reasons);
}
