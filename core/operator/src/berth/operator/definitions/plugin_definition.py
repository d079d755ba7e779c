"""The kind SchedulerPlugin: one out-of-tree plugin, a sidecar or a server of its own."""

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import DEFAULT_POLICY, POLICY_POINTS, SIDECAR_POINTS
from berth.operator.definitions.conditions import AGE, GENERATION, condition_column, conditions, definition
from berth.operator.definitions.profile_schema import MAX_PROFILES, policy_choice
from berth.operator.definitions.schema import (
    TEXT_LENGTH,
    Schema,
    choice,
    duration,
    fields,
    flag,
    free,
    free_list,
    integer,
    listed,
    mapping,
    resources,
    rule,
    text,
)
from berth.operator.kinds import PLUGIN_SECRETS

_OF_SIDECARS = (
    "command",
    "args",
    "env",
    "resources",
    "automountServiceAccountToken",
    "runAsUser",
    "metricsPort",
)
MAX_KEY = 317
"""A key: 253 bytes of prefix, "/", 63 bytes of name."""
MAX_USER = 2**31 - 1
POINTS = tuple(point.value for point in ExtensionPoint if point in SIDECAR_POINTS)
POLICIES = tuple(point.value for point in ExtensionPoint if point in POLICY_POINTS)


def plugin_definition() -> Schema:
    """Give the CustomResourceDefinition of SchedulerPlugin."""
    names = {
        "kind": "SchedulerPlugin",
        "plural": "schedulerplugins",
        "singular": "schedulerplugin",
        "shortNames": ["bplugin"],
    }
    columns: list[Schema] = [
        {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
        {"name": "Address", "type": "string", "jsonPath": ".spec.address", "priority": 1},
        {"name": "Profiles", "type": "string", "jsonPath": ".spec.profiles"},
        {"name": "Schedulers", "type": "string", "jsonPath": ".status.schedulers"},
        {"name": "Shadow", "type": "boolean", "jsonPath": ".spec.shadow", "priority": 1},
        condition_column("Ready"),
        AGE,
    ]
    about = "SchedulerPlugin is a plugin that a Scheduler runs beside itself, or reaches at an address."
    return definition(names, about, _spec(), _status(), columns)


def _spec() -> Schema:
    return fields(
        {**_sidecar(), **_reached(), **_calls(), **_place()},
        "The plugin: an image or an address, its arguments, and where its answers count.",
        rules=_rules(),
    )


def _rules() -> list[Schema]:
    """What fields require of each other."""
    one = rule(
        "has(self.image) != has(self.address)",
        "give either image, for a sidecar, or address, for a plugin that runs by itself",
    )
    container = " && ".join(f"!has(self.{name})" for name in _OF_SIDECARS)
    sidecar_only = rule(
        f"has(self.image) || ({container})",
        f"{', '.join(_OF_SIDECARS)} describe a sidecar; remove them, or give image instead of address",
    )
    over_tcp = rule(
        "!has(self.tls) || has(self.address) && !self.address.startsWith('unix:')",
        "is for a plugin at host:port; a socket is private by its mode",
        ".tls",
    )
    served = rule(
        "!has(self.failurePolicy) || !has(self.extensionPoints) || "
        + " && ".join(
            f"(!has(self.failurePolicy.{point}) || '{point}' in self.extensionPoints)" for point in POLICIES
        ),
        "names a point that extensionPoints leaves out; remove it there, or add it to extensionPoints",
        ".failurePolicy",
    )
    unshadowed = rule(
        "!has(self.shadow) || !self.shadow || !has(self.extensionPoints) || "
        "!('queueSort' in self.extensionPoints)",
        "can't be true for a plugin that orders the queue: no other one does",
        ".shadow",
    )
    return [one, sidecar_only, over_tcp, served, unshadowed]


def _sidecar() -> dict[str, Schema]:
    """The container that runs it."""
    return {
        "image": text(
            "The image that runs as a sidecar in each pod of the scheduler; give it or address.",
            longest=TEXT_LENGTH,
            shortest=1,
        ),
        "imagePullPolicy": choice(
            ("Always", "IfNotPresent", "Never"), "When the kubelet pulls the image.", default="IfNotPresent"
        ),
        "command": listed(
            text(longest=TEXT_LENGTH),
            "The command of the sidecar's container; the image's own if not given.",
            most=64,
        ),
        "args": listed(
            text(longest=TEXT_LENGTH), "The arguments of its command; the image's own if not given.", most=64
        ),
        "env": free_list(
            f"Variables of the sidecar's environment, as a container's env; a Secret that one refers to has "
            f"{PLUGIN_SECRETS} in its name. None if not given."
        ),
        "resources": resources(
            "Resources of the sidecar's container; requests of 50m CPU and 64Mi memory if not given."
        ),
        "runAsUser": integer(
            "The user ID that the sidecar runs as, best one of its own; the scheduler's if not given.",
            least=1,
            most=MAX_USER,
        ),
        "metricsPort": integer(
            "The port at which the sidecar serves /metrics over HTTP; not scraped if not given. The sidecar "
            "has it in BERTH_METRICS_ADDRESS; no two sidecars of a scheduler may have the same.",
            least=1024,
            most=65535,
        ),
        "automountServiceAccountToken": flag(
            "Whether the sidecar has the token of the scheduler's service account, with all of its rights; "
            "false if not given."
        ),
        "clusterRoles": listed(
            text(shortest=1),
            "ClusterRoles to which the schedulers that run it are bound, for kinds that it reads; none if "
            "not given. The operator needs the verbs bind and get on them.",
            most=8,
            kind="set",
        ),
    }


def _reached() -> dict[str, Schema]:
    """Where it is, if it is no sidecar."""
    return {
        "address": text(
            "Where a plugin that runs by itself listens, unix:/path/to.sock or host:port; give it or image.",
            longest=TEXT_LENGTH,
            rules=[_reachable()],
        ),
        "tls": fields(
            {
                "secretName": text(
                    "A Secret of the same namespace with ca.crt, tls.crt and tls.key: the authority of "
                    "the plugin's certificate, and what the scheduler shows it. Its name has "
                    f"{PLUGIN_SECRETS} in it.",
                    shortest=1,
                ),
                "serverName": text("The name in the plugin's certificate; the host of address if not given."),
            },
            "Certificates of both sides, for a plugin at host:port; plain text if not given.",
            required=("secretName",),
        ),
    }


def _calls() -> dict[str, Schema]:
    """What it is asked, and what its failures mean."""
    return {
        "arguments": free(
            "What the plugin is configured with; none if not given. A change reaches it while it runs; while "
            "it refuses one, ArgumentsAccepted is False and the arguments before serve."
        ),
        "extensionPoints": listed(
            choice(POINTS),
            "Where it takes part; if not given, everywhere but at queueSort and placementGenerate, where "
            "profiles have one plugin.",
            most=len(POINTS),
            kind="set",
            minItems=1,
        ),
        "failurePolicy": fields(
            {
                point: policy_choice(
                    f"At {point}: Fail ends the pod's attempt, Ignore goes on without the plugin; "
                    f"{DEFAULT_POLICY[ExtensionPoint(point)]} if not given."
                )
                for point in POLICIES
            },
            "What a call that fails means for the pod, by extension point.",
        ),
        "exemptPods": _exempt(),
        "metadataKeys": listed(
            text(longest=MAX_KEY),
            "The keys of labels and annotations that it may write to pods, or prefix/* for all keys of a "
            "prefix; if not given, keys whose prefix begins with its own name.",
            most=64,
            kind="set",
        ),
        "timeout": duration(
            "The longest that one call may take; the plugin's own wish, or 1s, if not given."
        ),
    }


def _place() -> dict[str, Schema]:
    """Where its answers count, and how much."""
    return {
        "profiles": listed(
            text(shortest=1),
            "The profiles in which it is enabled at every point that it serves; none if not given. Profiles "
            "that name it among their plugins need not be listed.",
            most=MAX_PROFILES,
            kind="set",
        ),
        "weight": integer(
            "What its scores are multiplied by in these profiles.", least=1, most=100, default=1
        ),
        "shadow": flag(
            "Whether it is asked about live pods without a say in what is decided, to compare; false if not "
            "given. A change reaches running schedulers."
        ),
    }


def _exempt() -> Schema:
    some = rule(
        "has(self.namespaces) || has(self.matchLabels)",
        "give namespaces or matchLabels: without both every pod would be exempt",
    )
    return fields(
        {
            "namespaces": listed(
                text(shortest=1),
                "Pods of these namespaces; of all if not given.",
                most=64,
                kind="set",
                minItems=1,
            ),
            "matchLabels": mapping(
                text(longest=63),
                "Pods with all of these labels; with any if not given.",
                most=16,
                minProperties=1,
            ),
        },
        "Pods that are scheduled although the plugin fails, such as its own; none if not given.",
        rules=[some],
    )


def _reachable() -> Schema:
    return rule(
        r"self.matches(r'^(unix:/.+|(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5})$')",
        "write unix:/path/to.sock or host:port",
    )


def _status() -> Schema:
    return fields(
        {
            "observedGeneration": GENERATION,
            "schedulers": listed(text(), "The names of the Schedulers that run it.", most=64),
            "accepted": fields(
                {"arguments": free("The arguments as they were taken; absent where it was given none.")},
                "The arguments that it took last; they serve while spec.arguments is refused.",
            ),
            "conditions": conditions("Ready always; ArgumentsAccepted once it was given arguments."),
        }
    )
