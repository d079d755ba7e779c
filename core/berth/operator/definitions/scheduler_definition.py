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
from berth.telemetry.sampling import MAX_PER_MINUTE

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
                    {"name": text("A SchedulerPlugin of the same namespace.", shortest=1)}, required=("name",)
                ),
                "name",
                "The out-of-tree plugins that run beside it.",
                most=MAX_PLUGINS,
            ),
            "extenders": extenders(),
            "percentageOfNodesToScore": integer(
                "How many feasible nodes are enough; all nodes are looked at if it is 0 or not given.",
                least=0,
                most=100,
            ),
            "parallelism": integer("Kept for compatibility; Berth works on all nodes at once.", least=1),
            "podInitialBackoffSeconds": integer(
                "Seconds that a pod waits after its first failure; 1 if not given.", least=1
            ),
            "podMaxBackoffSeconds": integer(
                "Seconds that a pod waits at most after failures; 10 if not given.", least=1
            ),
            "clientConnection": _client_connection(),
            "featureGates": mapping({"type": "boolean"}, "Feature gates, as kube-scheduler's.", most=128),
            "replicas": integer(
                "How many pods; one schedules, the others stand by.", least=0, most=32, default=1
            ),
            "leaderElection": _leader_election(),
            "image": text(
                "The scheduler's image; the operator's choice if not given.", longest=TEXT_LENGTH, shortest=1
            ),
            "imagePullPolicy": choice(
                ("Always", "IfNotPresent", "Never"), "When the image is pulled.", default="IfNotPresent"
            ),
            "resources": resources("What the scheduler's container asks for."),
            "telemetry": _telemetry(),
            "rollout": _rollout(),
            "networkPolicy": flag("Whether a NetworkPolicy guards its pods.", default=True),
            "pod": _pod(),
            "descheduler": descheduler(),
        },
        required=("profiles",),
        rules=[elected, backoff, itself, in_tree_plugins_alone()],
    )


def _client_connection() -> Schema:
    return fields(
        {
            "qps": of_number("Requests a second; a negative number means no limit. 50 if not given."),
            "burst": integer("How many requests may come at once; 100 if not given.", least=0),
        },
        "How fast it may talk to the API server.",
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
            "leaderElect": flag("Whether replicas choose one among them by a lease.", default=True),
            "leaseDuration": duration("After how long a silent leader is replaced.", default="15s"),
            "renewDeadline": duration("After how long without renewal a leader stops.", default="10s"),
            "retryPeriod": duration("How often the lease is renewed or asked for.", default="2s"),
            "resourceName": text("The lease; berth-NAME if not given.", shortest=1),
            "resourceNamespace": text(
                "The lease's namespace, the Scheduler's own if not given. In another its service account "
                "needs a role for the lease.",
                longest=63,
                shortest=1,
            ),
        },
        "How replicas choose the one that schedules.",
        rules=[renew, retry],
    )


def _telemetry() -> Schema:
    tracing = fields(
        {
            "endpoint": text(
                "The OTLP collector.",
                longest=TEXT_LENGTH,
                rules=[
                    rule(
                        "self.matches('^https?://')",
                        "write the collector's URL, such as http://collector:4317",
                    )
                ],
            ),
            "protocol": choice(("grpc", "http/protobuf"), "How the collector is spoken to.", default="grpc"),
            "samplingRatePerMillion": integer(
                "How many of a million attempts are traced; all of them without it.", least=0, most=1_000_000
            ),
            # Stored Schedulers have it, 100 by default: a rule that forbids both fields would bar them.
            "samplingPercent": integer(
                "The earlier name of the rate, in hundredths; it yields to samplingRatePerMillion.",
                least=0,
                most=100,
            ),
            "failedPerMinute": integer(
                "How many failed attempts more are traced in a minute: without it 60, none if the rate is 0.",
                least=0,
                most=MAX_PER_MINUTE,
            ),
            "slowPerMinute": integer(
                "How many slow attempts more are traced in a minute: without it 60, none if the rate is 0.",
                least=0,
                most=MAX_PER_MINUTE,
            ),
            "slowerThan": duration("From which time on a scheduling cycle is slow.", default="100ms"),
        },
        "A trace for every attempt to schedule a pod.",
        required=("endpoint",),
    )
    logging = fields(
        {
            "format": choice(("text", "json"), "How lines are written.", default="text"),
            "verbosity": integer("How much is logged; 0 if not given.", least=0, most=10),
        },
        "The log of the scheduler's container.",
    )
    metrics = fields(
        {
            "serviceMonitor": flag("Whether a ServiceMonitor is kept where that kind exists.", default=True),
            "interval": duration("How often metrics are scraped.", default="30s"),
        },
        "How metrics are scraped.",
    )
    page = flag(
        "Whether the secure port serves /live, a page about nodes, queue and decisions.",
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
            "maxSurge": share("How many pods more than asked for while rolling out.", default=1),
            "maxUnavailable": share("How many pods fewer than asked for while rolling out.", default=0),
            "progressDeadlineSeconds": integer(
                "After how long a rollout counts as stuck.", least=1, default=600
            ),
            "minReadySeconds": integer("How long a pod has to be ready to count.", least=0, default=0),
            "paused": flag("Whether changes wait.", default=False),
        },
        "How changes reach its pods.",
        rules=[both],
    )


def _pod() -> Schema:
    labels = mapping(text(longest=63), "As a pod's.", most=64)
    return fields(
        {
            "labels": labels,
            "annotations": mapping(text(longest=65536), "As a pod's.", most=64),
            "nodeSelector": labels,
            "tolerations": free_list("As a pod's."),
            "affinity": free("As a pod's."),
            "topologySpreadConstraints": free_list("As a pod's; over hosts and zones if not given."),
            "priorityClassName": text("As a pod's; the operator's choice if not given.", shortest=1),
            "schedulerName": text(
                "Who schedules the scheduler's own pods; not itself.", shortest=1, default="default-scheduler"
            ),
            "imagePullSecrets": keyed(
                fields({"name": text("A Secret of the namespace.", shortest=1)}, required=("name",)),
                "name",
                "As a pod's.",
                most=16,
            ),
        },
        "What its pods have beside the scheduler.",
    )


def _status() -> Schema:
    plugin = fields(
        {
            "name": text("The SchedulerPlugin."),
            "ready": flag("Whether it is ready in every pod."),
            "message": text("What keeps it from being ready.", longest=TEXT_LENGTH),
        },
        required=("name", "ready"),
    )
    return fields(
        {
            "observedGeneration": GENERATION,
            "replicas": integer("How many pods there are."),
            "readyReplicas": integer("How many of them are ready."),
            "updatedReplicas": integer("How many of them have the present spec."),
            "selector": text("The labels of its pods.", longest=TEXT_LENGTH),
            "configurationHash": text("Of the configuration that was last rolled out.", longest=64),
            "profiles": listed(
                text(longest=NAME_LENGTH), "The scheduler names of its profiles.", most=MAX_PROFILES
            ),
            "plugins": keyed(plugin, "name", "How each plugin is.", most=MAX_PLUGINS),
            "conditions": conditions(
                "Available, Progressing, Degraded, PluginsReady, KubernetesTested, Descheduling, "
                "ArgumentsAccepted, Leading."
            ),
        }
    )
