"""The flags of kube-scheduler v1.36, and Berth's own: data, no behaviour.

Source: cmd/kube-scheduler/app/options, k8s.io/apiserver, k8s.io/component-base (Kubernetes v1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from berth.config.duration import Duration


class Kind(Enum):
    """What a flag's value is; its name appears in the usage text."""

    BOOL = "bool"
    INT = "int"
    INT32 = "int32"
    FLOAT32 = "float32"
    DURATION = "duration"
    STRING = "string"
    STRINGS = "strings"
    IP = "ip"
    VERSION = "version"


class Effect(Enum):
    """What becomes of a flag here."""

    HONOURED = auto()
    DEPRECATED = auto()  # honoured, but the configuration file is the place for it, and wins
    NONE = auto()  # accepted, so that command lines carry over, with a warning


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: its name without hyphens, the kind and default of its value, what it is for."""

    name: str
    kind: Kind
    default: Any
    help: str
    section: str
    effect: Effect = Effect.HONOURED
    choices: tuple[str, ...] = ()
    short: str = ""


def _section(title: str, *rows: tuple[str, Kind, Any, str], effect: Effect = Effect.HONOURED) -> list[Flag]:
    return [Flag(name, kind, default, text, title, effect) for name, kind, default, text in rows]


_DEFAULT_TTL = Duration.of_seconds(10)

_FILES = _section(
    "misc",
    ("config", Kind.STRING, "", "The configuration file."),
    ("plugins", Kind.STRING, "", "The list of out-of-tree plugins (kind PluginList)."),
    ("write-config-to", Kind.STRING, "", "Write the effective configuration to this file and exit."),
    ("record-to", Kind.STRING, "", "Record what is decided to a file in this folder, to be replayed."),
    ("record-most-mib", Kind.INT, 1024, "How much recordings in that folder may take."),
    ("master", Kind.STRING, "", "The API server's address; overrides the kubeconfig."),
    (
        "release",
        Kind.STRING,
        "",
        "The Kubernetes release to decide as, such as 1.37; by default the API server's.",
    ),
    ("version", Kind.VERSION, "", "Print the version and exit; raw prints more."),
)
_CLIENT = _section(
    "misc",
    (
        "request-timeout",
        Kind.DURATION,
        Duration.of_seconds(30),
        "How long the API server may take to answer.",
    ),
)
_SERVING = _section(
    "secure serving",
    ("secure-port", Kind.INT, 10259, "The HTTPS port; 0 serves nothing."),
    ("bind-address", Kind.IP, "0.0.0.0", "The address to listen on."),  # noqa: S104 (the documented default)
    ("cert-dir", Kind.STRING, "", "Where the serving certificate is."),
    ("tls-cert-file", Kind.STRING, "", "The serving certificate."),
    ("tls-private-key-file", Kind.STRING, "", "The serving certificate's key."),
    ("tls-cipher-suites", Kind.STRINGS, (), "The cipher suites to offer."),
    ("tls-min-version", Kind.STRING, "", "The lowest TLS version to accept."),
    ("live-page", Kind.BOOL, False, "Serve /live, a page about nodes, queue and decisions of the moment."),
)
_SERVING_WITHOUT_EFFECT = _section(
    "secure serving",
    ("tls-curve-preferences", Kind.STRINGS, (), "The key exchange groups to offer."),
    ("tls-sni-cert-key", Kind.STRINGS, (), "Certificates for other server names."),
    ("permit-address-sharing", Kind.BOOL, False, "Share the address with other sockets."),
    ("permit-port-sharing", Kind.BOOL, False, "Share the port with other processes."),
    ("disable-http2-serving", Kind.BOOL, False, "Serve HTTP/1.1 only, as is always done here."),
    ("http2-max-streams-per-connection", Kind.INT, 0, "The number of streams of a connection."),
    effect=Effect.NONE,
)
_AUTHENTICATION = _section(
    "authentication",
    ("authentication-kubeconfig", Kind.STRING, "", "Who reviews tokens; without it tokens are anonymous."),
    ("authentication-skip-lookup", Kind.BOOL, False, "Do not read the authentication config map."),
    ("authentication-token-webhook-cache-ttl", Kind.DURATION, _DEFAULT_TTL, "How long reviews are kept."),
    ("authentication-tolerate-lookup-failure", Kind.BOOL, True, "Start without that config map."),
    ("client-ca-file", Kind.STRING, "", "The authority of client certificates."),
    ("requestheader-allowed-names", Kind.STRINGS, (), "Names of front proxies that are trusted."),
    ("requestheader-client-ca-file", Kind.STRING, "", "The authority of front proxies."),
    ("requestheader-username-headers", Kind.STRINGS, ("x-remote-user",), "Headers that hold the user."),
    ("requestheader-group-headers", Kind.STRINGS, ("x-remote-group",), "Headers that hold the groups."),
    ("requestheader-extra-headers-prefix", Kind.STRINGS, ("x-remote-extra-",), "Headers with more."),
    ("requestheader-uid-headers", Kind.STRINGS, (), "Headers that hold the user's UID."),
)
_AUTHORIZATION = _section(
    "authorization",
    ("authorization-kubeconfig", Kind.STRING, "", "Who reviews access."),
    (
        "authorization-always-allow-paths",
        Kind.STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may get; a final * means a prefix.",
    ),
    ("authorization-webhook-cache-authorized-ttl", Kind.DURATION, _DEFAULT_TTL, "How long a yes is kept."),
    ("authorization-webhook-cache-unauthorized-ttl", Kind.DURATION, _DEFAULT_TTL, "How long a no is kept."),
)
_DEPRECATED = _section(
    "deprecated",
    ("kubeconfig", Kind.STRING, "", "The kubeconfig; ignored with --config."),
    ("kube-api-content-type", Kind.STRING, "application/vnd.kubernetes.protobuf", "Ignored with --config."),
    ("kube-api-qps", Kind.FLOAT32, 50.0, "Requests a second; ignored with --config."),
    ("kube-api-burst", Kind.INT32, 100, "Requests at once; ignored with --config."),
    ("profiling", Kind.BOOL, True, "Serve /debug/pprof; ignored with --config."),
    ("contention-profiling", Kind.BOOL, True, "Sample blocking; ignored with --config."),
    effect=Effect.DEPRECATED,
)
_UNSCHEDULABLE = _section(
    "deprecated",
    (
        "pod-max-in-unschedulable-pods-duration",
        Kind.DURATION,
        Duration.of_seconds(300),
        "How long a pod stays unschedulable before it is tried again.",
    ),
)
_ELECTION = _section(
    "leader election",
    ("leader-elect", Kind.BOOL, True, "Take part in leader election."),
    ("leader-elect-lease-duration", Kind.DURATION, Duration.of_seconds(15), "How long a lease lasts."),
    ("leader-elect-renew-deadline", Kind.DURATION, Duration.of_seconds(10), "When to give up renewing."),
    ("leader-elect-retry-period", Kind.DURATION, Duration.of_seconds(2), "The pause between attempts."),
    ("leader-elect-resource-lock", Kind.STRING, "leases", "The kind of lock; only leases exist."),
    ("leader-elect-resource-name", Kind.STRING, "kube-scheduler", "The lock's name."),
    ("leader-elect-resource-namespace", Kind.STRING, "kube-system", "The lock's namespace."),
)
_GATES = _section(
    "feature gate",
    ("feature-gates", Kind.STRINGS, (), "Pairs such as GenericWorkload=true."),
    ("emulated-version", Kind.STRINGS, (), "The release whose feature defaults apply."),
    ("min-compatibility-version", Kind.STRINGS, (), "The oldest release to get along with."),
)
_METRICS = _section(
    "metrics",
    ("disabled-metrics", Kind.STRINGS, (), "Metrics to leave out."),
)
_METRICS_WITHOUT_EFFECT = _section(
    "metrics",
    ("allow-metric-labels", Kind.STRINGS, (), "Label values to tell apart."),
    ("allow-metric-labels-manifest", Kind.STRING, "", "A file with label values to tell apart."),
    ("show-hidden-metrics-for-version", Kind.STRING, "", "Show what that release has hidden."),
    effect=Effect.NONE,
)
_LOGS = [
    Flag("v", Kind.INT, 0, "The verbosity of logs.", "logs", short="v"),
    Flag("logging-format", Kind.STRING, "text", "How logs look.", "logs", choices=("text", "json")),
]
_LOGS_WITHOUT_EFFECT = _section(
    "logs",
    ("vmodule", Kind.STRINGS, (), "Verbosity by source file."),
    ("log-flush-frequency", Kind.DURATION, Duration.of_seconds(5), "How often logs are flushed."),
    ("log-text-split-stream", Kind.BOOL, False, "Errors to another stream."),
    ("log-text-info-buffer-size", Kind.STRING, "0", "How much to buffer."),
    ("log-json-split-stream", Kind.BOOL, False, "Errors to another stream."),
    ("log-json-info-buffer-size", Kind.STRING, "0", "How much to buffer."),
    effect=Effect.NONE,
)

FLAGS: tuple[Flag, ...] = (
    *_FILES,
    *_CLIENT,
    *_SERVING,
    *_SERVING_WITHOUT_EFFECT,
    *_AUTHENTICATION,
    *_AUTHORIZATION,
    *_DEPRECATED,
    *_UNSCHEDULABLE,
    *_ELECTION,
    *_GATES,
    *_METRICS,
    *_METRICS_WITHOUT_EFFECT,
    *_LOGS,
    *_LOGS_WITHOUT_EFFECT,
)


def by_name(flags: Iterable[Flag]) -> dict[str, Flag]:
    """Give flags by name."""
    return {flag.name: flag for flag in flags}
