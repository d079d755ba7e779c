"""The kind Scheduler: one scheduler, with its profiles and the plugins beside it."""

from berth.operator.definitions.conditions import AGE, GENERATION, condition_column, conditions, definition
from berth.operator.definitions.descheduler_schema import descheduler, in_tree_plugins_alone, short_name
from berth.operator.definitions.profile_schema import MAX_PROFILES, extenders, profiles
from berth.operator.definitions.schema import (
    INT32,
    NAME_LENGTH,
    TEXT_LENGTH,
    Schema,
    choice,
    duration,
    fields,
    flag,
    free,
    free_list,
    integer,
    keyed,
    listed,
    mapping,
    resources,
    rule,
    share,
    text,
)
from berth.telemetry.traces.sampling import MAX_PER_MINUTE

MAX_PLUGINS = 16


def scheduler_definition() -> Schema:
    """Give the CustomResourceDefinition of Scheduler."""
    names = {"kind": "Scheduler", "plural": "schedulers", "singular": "scheduler", "shortNames": ["bsched"]}
    columns = [
        {"name": "Profiles", "type": "string", "jsonPath": ".status.profiles"},
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
        condition_column("Available"),
        condition_column("Degraded"),
        condition_column("PluginsReady", name="Plugins"),
        condition_column("Degraded", name="Cause", part="reason", priority=1),
        AGE,
    ]
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    about = "Scheduler is a Berth scheduler: its profiles, its plugins, and how it runs."
    label = rule(
        "!self.metadata.name.contains('.')",
        "give it a name without dots: its Service is called berth-NAME, and names of Services have none",
    )
    reserved = rule(
        "self.metadata.name != 'operator'", "berth-operator is the operator itself; give it another name"
    )
    return definition(names, about, _spec(), _status(), columns, label, reserved, short_name(), scale=scale)


def _spec() -> Schema:
    elected = rule(
        "self.replicas <= 1 || !has(self.leaderElection) || self.leaderElection.leaderElect",
        "several replicas without leader election would schedule each pod several times; set "
        "leaderElection.leaderElect to true, or replicas to 1",
        ".leaderElection.leaderElect",
    )
    backoff = rule(
        "(has(self.podMaxBackoffSeconds) ? self.podMaxBackoffSeconds : 10) >= "
        "(has(self.podInitialBackoffSeconds) ? self.podInitialBackoffSeconds : 1)",
        "must not be less than podInitialBackoffSeconds (1 if not set); raise it, or lower that",
        ".podMaxBackoffSeconds",
    )
    itself = rule(
        "!has(self.pod) || !has(self.pod.schedulerName) || self.pod.schedulerName == 'default-scheduler' || "
        "!self.profiles.exists(p, p.schedulerName == self.pod.schedulerName)",
        "a scheduler that is down cannot place its own pods; name another scheduler than one of the profiles",
        ".pod.schedulerName",
    )
    return fields(
        {
            "profiles": profiles(),
            "plugins": keyed(
                fields(
                    {"name": text("The name of a SchedulerPlugin in the same namespace.", shortest=1)},
                    required=("name",),
                ),
                "name",
                "The out-of-tree plugins that it runs or calls, each a SchedulerPlugin; none if not given.",
                most=MAX_PLUGINS,
            ),
            "extenders": extenders(),
            "percentageOfNodesToScore": integer(
                "The percentage of the nodes at which the search for feasible ones ends; all nodes are "
                "looked at if it is 0 or not given.",
                least=0,
                most=100,
            ),
            "parallelism": integer(
                "Accepted as kube-scheduler's, without effect: Berth evaluates all nodes at once.", least=1
            ),
            "podInitialBackoffSeconds": integer(
                "Seconds that a pod waits after its first failure; 1 if not given.", least=1
            ),
            "podMaxBackoffSeconds": integer(
                "Seconds that a pod waits at most after failures; 10 if not given.", least=1
            ),
            "clientConnection": _client_connection(),
            "featureGates": mapping(
                {"type": "boolean"},
                "kube-scheduler's feature gates by name; those not given have the release's defaults.",
                most=128,
            ),
            "replicas": integer(
                "How many pods it has; one schedules, the others stand by. 0 ends it and keeps all else.",
                least=0,
                most=32,
                default=1,
            ),
            "leaderElection": _leader_election(),
            "image": text(
                "The scheduler's image; the operator's choice if not given.", longest=TEXT_LENGTH, shortest=1
            ),
            "imagePullPolicy": choice(
                ("Always", "IfNotPresent", "Never"),
                "When the kubelet pulls the image.",
                default="IfNotPresent",
            ),
            "resources": resources(
                "Resources of the scheduler's container; requests of 100m CPU and 256Mi memory if not given."
            ),
            "telemetry": _telemetry(),
            "rollout": _rollout(),
            "networkPolicy": flag(
                "Whether a NetworkPolicy opens the ports that its pods serve, and no others.",
                default=True,
            ),
            "pod": _pod(),
            "descheduler": descheduler(),
        },
        "The scheduler that the operator keeps running: profiles, plugins and extenders as in a "
        "KubeSchedulerConfiguration, and what its pods are like.",
        required=("profiles",),
        rules=[elected, backoff, itself, in_tree_plugins_alone()],
    )


def _client_connection() -> Schema:
    return fields(
        {
            "qps": of_number(
                "How many requests it may send in a second on average; no limit if negative, 50 if not given."
            ),
            "burst": integer("How many requests it may send at once beyond qps; 100 if not given.", least=0),
        },
        "Limits of its requests to the API server, as kube-scheduler's.",
    )


def of_number(about: str) -> Schema:
    """A number, whole or not."""
    return {"description": about, "type": "number", "maximum": INT32, "minimum": -1}


def _leader_election() -> Schema:
    renew = rule(
        "!self.leaderElect || duration(self.renewDeadline) < duration(self.leaseDuration)",
        "must be shorter than leaseDuration; shorten it, or lengthen leaseDuration",
        ".renewDeadline",
    )
    retry = rule(
        "!self.leaderElect || "
        "duration(self.retryPeriod).getMilliseconds() * 12 "
        "< duration(self.renewDeadline).getMilliseconds() * 10",
        "1.2 times retryPeriod must be shorter than renewDeadline; shorten it, or lengthen renewDeadline",
        ".retryPeriod",
    )
    return fields(
        {
            "leaderElect": flag(
                "Whether replicas elect a leader by a Lease; required for more than one replica.",
                default=True,
            ),
            "leaseDuration": duration(
                "How long after the leader's last renewal a standby may take the Lease.", default="15s"
            ),
            "renewDeadline": duration(
                "How long after its last renewal the leader goes on trying, and then stops to lead.",
                default="10s",
            ),
            "retryPeriod": duration(
                "The pause between two tries to renew or to acquire the Lease.", default="2s"
            ),
            "resourceName": text(
                "The name of the Lease; berth-NAME if not given. Schedulers that name one Lease take turns.",
                shortest=1,
            ),
            "resourceNamespace": text(
                "The namespace of the Lease, the Scheduler's own if not given. In another one its service "
                "account needs a role for the Lease.",
                longest=63,
                shortest=1,
            ),
        },
        "How replicas elect the one that schedules, as kube-scheduler's.",
        rules=[renew, retry],
    )


def _telemetry() -> Schema:
    tracing = fields(
        {
            "endpoint": text(
                "The URL of the OTLP collector, such as http://collector:4317.",
                longest=TEXT_LENGTH,
                rules=[
                    rule(
                        "self.matches('^https?://')",
                        "write the collector's URL, such as http://collector:4317",
                    )
                ],
            ),
            "protocol": choice(
                ("grpc", "http/protobuf"), "The protocol of OTLP that the collector expects.", default="grpc"
            ),
            "samplingRatePerMillion": integer(
                "How many of a million attempts are traced; all if not given.", least=0, most=1_000_000
            ),
            # Stored Schedulers have it, 100 by default: a rule that forbids both fields would bar them.
            "samplingPercent": integer(
                "The earlier form of the rate, a percentage; taken if samplingRatePerMillion is not given.",
                least=0,
                most=100,
            ),
            "failedPerMinute": integer(
                "How many failed attempts are traced in a minute although the rate leaves them out; 60 if "
                "not given, none where the rate is 0.",
                least=0,
                most=MAX_PER_MINUTE,
            ),
            "slowPerMinute": integer(
                "How many slow attempts are traced in a minute although the rate leaves them out; 60 if not "
                "given, none where the rate is 0.",
                least=0,
                most=MAX_PER_MINUTE,
            ),
            "slowerThan": duration(
                "The duration from which on a scheduling cycle counts as slow.", default="100ms"
            ),
        },
        "Traces, one for each sampled attempt to schedule a pod; none if not given.",
        required=("endpoint",),
    )
    logging = fields(
        {
            "format": choice(("text", "json"), "The format of a line.", default="text"),
            "verbosity": integer(
                "The verbosity of the log, as kube-scheduler's -v; 0 if not given.", least=0, most=10
            ),
        },
        "The log of the scheduler's container.",
    )
    metrics = fields(
        {
            "serviceMonitor": flag(
                "Whether a ServiceMonitor is made in clusters that have this kind.", default=True
            ),
            "interval": duration("The ServiceMonitor's interval.", default="30s"),
        },
        "How Prometheus' operator scrapes metrics.",
    )
    page = flag(
        "Whether the secure port serves /live, a page of nodes, queue and decisions.",
        default=False,
    )
    return fields(
        {"tracing": tracing, "logging": logging, "metrics": metrics, "livePage": page},
        "Traces, logs, metrics and the live page.",
    )


def _rollout() -> Schema:
    both = rule(
        "string(self.maxSurge) != '0' && string(self.maxSurge) != '0%' || "
        "string(self.maxUnavailable) != '0' && string(self.maxUnavailable) != '0%'",
        "maxSurge and maxUnavailable cannot both be 0: nothing could ever be replaced",
        ".maxUnavailable",
    )
    return fields(
        {
            "maxSurge": share(
                "How many pods, or which percentage, there may be beyond replicas during a rollout.",
                default=1,
            ),
            "maxUnavailable": share(
                "How many pods, or which percentage, may be lacking during a rollout.", default=0
            ),
            "progressDeadlineSeconds": integer(
                "Seconds after which a rollout without progress is Degraded.", least=1, default=600
            ),
            "minReadySeconds": integer(
                "Seconds that a pod has to be ready before it counts as available.", least=0, default=0
            ),
            "paused": flag(
                "Whether changes of the spec wait, but for those that reach running pods.", default=False
            ),
        },
        "How changes reach its pods, as a Deployment's rolling update.",
        rules=[both],
    )


def _pod() -> Schema:
    value = text(longest=63)
    return fields(
        {
            "labels": mapping(
                value, "Labels of the pods beside the operator's, which win; none if not given.", most=64
            ),
            "annotations": mapping(
                text(longest=65536),
                "Annotations of the pods beside the operator's, which win; none if not given.",
                most=64,
            ),
            "nodeSelector": mapping(value, "The pods' spec.nodeSelector; none if not given.", most=64),
            "tolerations": free_list("The pods' spec.tolerations; none if not given."),
            "affinity": free("The pods' spec.affinity; none if not given."),
            "topologySpreadConstraints": free_list(
                "The pods' spec.topologySpreadConstraints; over hosts and zones if not given."
            ),
            "priorityClassName": text(
                "The pods' spec.priorityClassName; the operator's choice if not given.", shortest=1
            ),
            "schedulerName": text(
                "The pods' spec.schedulerName; not one of its own profiles, which could not place them.",
                shortest=1,
                default="default-scheduler",
            ),
            "imagePullSecrets": keyed(
                fields(
                    {"name": text("The name of a Secret in the namespace.", shortest=1)}, required=("name",)
                ),
                "name",
                "The pods' spec.imagePullSecrets; none if not given.",
                most=16,
            ),
        },
        "Fields of the scheduler's pods that the operator leaves to you.",
    )


def _status() -> Schema:
    plugin = fields(
        {
            "name": text("The name of the SchedulerPlugin."),
            "ready": flag("Whether every pod of the scheduler has it ready."),
            "message": text("The cause, with the pod, where it is not ready.", longest=TEXT_LENGTH),
        },
        required=("name", "ready"),
    )
    return fields(
        {
            "observedGeneration": GENERATION,
            "replicas": integer("How many pods the scheduler has."),
            "readyReplicas": integer("How many of them are ready."),
            "updatedReplicas": integer("How many of them have the latest spec."),
            "selector": text(
                "The label selector of its pods, for kubectl scale and autoscalers.", longest=TEXT_LENGTH
            ),
            "configurationHash": text("A digest of the configuration that was last rolled out.", longest=64),
            "profiles": listed(
                text(longest=NAME_LENGTH), "The scheduler names of its profiles.", most=MAX_PROFILES
            ),
            "plugins": keyed(
                plugin, "name", "Each plugin of the spec, and whether it is ready.", most=MAX_PLUGINS
            ),
            "conditions": conditions(
                "Available, Progressing and Degraded always; PluginsReady, KubernetesTested, Descheduling, "
                "ArgumentsAccepted and Leading where they apply."
            ),
        }
    )
