"""The flags of kube-scheduler v1.36, and Berth's own: data, no behaviour.

Source: cmd/kube-scheduler/app/options, k8s.io/apiserver, k8s.io/component-base (Kubernetes v1.36).
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

import msgspec

from berth.config.duration import Duration


class FlagKind(Enum):
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


class Flag(msgspec.Struct, frozen=True):
    """A flag: its name without hyphens, the kind and default of its value, what it is for."""

    name: str
    kind: FlagKind
    default: Any
    help: str
    section: str
    effect: Effect = Effect.HONOURED
    choices: tuple[str, ...] = ()
    short: str = ""


def _section(
    title: str, *rows: tuple[str, FlagKind, Any, str], effect: Effect = Effect.HONOURED
) -> list[Flag]:
    return [Flag(name, kind, default, text, title, effect) for name, kind, default, text in rows]


_DEFAULT_TTL = Duration.of_seconds(10)

_FILES = _section(
    "misc",
    ("config", FlagKind.STRING, "", "The configuration file."),
    ("plugins", FlagKind.STRING, "", "The list of out-of-tree plugins (kind PluginList)."),
    ("write-config-to", FlagKind.STRING, "", "Write the effective configuration to this file and exit."),
    ("record-to", FlagKind.STRING, "", "Record what is decided to a file in this folder, to be replayed."),
    ("record-most-mib", FlagKind.INT, 1024, "How much recordings in that folder may take."),
    ("master", FlagKind.STRING, "", "The API server's address; overrides the kubeconfig."),
    (
        "release",
        FlagKind.STRING,
        "",
        "The Kubernetes release to decide as, such as 1.37; by default the API server's.",
    ),
    ("version", FlagKind.VERSION, "", "Print the version and exit; raw prints more."),
)
_CLIENT = _section(
    "misc",
    (
        "request-timeout",
        FlagKind.DURATION,
        Duration.of_seconds(30),
        "How long the API server may take to answer.",
    ),
)
_SERVING = _section(
    "secure serving",
    ("secure-port", FlagKind.INT, 10259, "The HTTPS port; 0 serves nothing."),
    ("bind-address", FlagKind.IP, "0.0.0.0", "The address to listen on."),  # noqa: S104 (the documented default)
    ("cert-dir", FlagKind.STRING, "", "Where the serving certificate is."),
    ("tls-cert-file", FlagKind.STRING, "", "The serving certificate."),
    ("tls-private-key-file", FlagKind.STRING, "", "The serving certificate's key."),
    ("tls-cipher-suites", FlagKind.STRINGS, (), "The cipher suites to offer."),
    ("tls-min-version", FlagKind.STRING, "", "The lowest TLS version to accept."),
    (
        "live-page",
        FlagKind.BOOL,
        False,
        "Serve /live, a page about nodes, queue and decisions of the moment.",
    ),
)
_SERVING_WITHOUT_EFFECT = _section(
    "secure serving",
    ("tls-curve-preferences", FlagKind.STRINGS, (), "The key exchange groups to offer."),
    ("tls-sni-cert-key", FlagKind.STRINGS, (), "Certificates for other server names."),
    ("permit-address-sharing", FlagKind.BOOL, False, "Share the address with other sockets."),
    ("permit-port-sharing", FlagKind.BOOL, False, "Share the port with other processes."),
    ("disable-http2-serving", FlagKind.BOOL, False, "Serve HTTP/1.1 only, as is always done here."),
    ("http2-max-streams-per-connection", FlagKind.INT, 0, "The number of streams of a connection."),
    effect=Effect.NONE,
)
_AUTHENTICATION = _section(
    "authentication",
    (
        "authentication-kubeconfig",
        FlagKind.STRING,
        "",
        "Who reviews tokens; without it tokens are anonymous.",
    ),
    ("authentication-skip-lookup", FlagKind.BOOL, False, "Do not read the authentication config map."),
    ("authentication-token-webhook-cache-ttl", FlagKind.DURATION, _DEFAULT_TTL, "How long reviews are kept."),
    ("authentication-tolerate-lookup-failure", FlagKind.BOOL, True, "Start without that config map."),
    ("client-ca-file", FlagKind.STRING, "", "The authority of client certificates."),
    ("requestheader-allowed-names", FlagKind.STRINGS, (), "Names of front proxies that are trusted."),
    ("requestheader-client-ca-file", FlagKind.STRING, "", "The authority of front proxies."),
    ("requestheader-username-headers", FlagKind.STRINGS, ("x-remote-user",), "Headers that hold the user."),
    ("requestheader-group-headers", FlagKind.STRINGS, ("x-remote-group",), "Headers that hold the groups."),
    ("requestheader-extra-headers-prefix", FlagKind.STRINGS, ("x-remote-extra-",), "Headers with more."),
    ("requestheader-uid-headers", FlagKind.STRINGS, (), "Headers that hold the user's UID."),
)
_AUTHORIZATION = _section(
    "authorization",
    ("authorization-kubeconfig", FlagKind.STRING, "", "Who reviews access."),
    (
        "authorization-always-allow-paths",
        FlagKind.STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may get; a final * means a prefix.",
    ),
    (
        "authorization-webhook-cache-authorized-ttl",
        FlagKind.DURATION,
        _DEFAULT_TTL,
        "How long a yes is kept.",
    ),
    (
        "authorization-webhook-cache-unauthorized-ttl",
        FlagKind.DURATION,
        _DEFAULT_TTL,
        "How long a no is kept.",
    ),
)
_DEPRECATED = _section(
    "deprecated",
    ("kubeconfig", FlagKind.STRING, "", "The kubeconfig; ignored with --config."),
    (
        "kube-api-content-type",
        FlagKind.STRING,
        "application/vnd.kubernetes.protobuf",
        "Ignored with --config.",
    ),
    ("kube-api-qps", FlagKind.FLOAT32, 50.0, "Requests a second; ignored with --config."),
    ("kube-api-burst", FlagKind.INT32, 100, "Requests at once; ignored with --config."),
    ("profiling", FlagKind.BOOL, True, "Serve /debug/pprof; ignored with --config."),
    ("contention-profiling", FlagKind.BOOL, True, "Sample blocking; ignored with --config."),
    effect=Effect.DEPRECATED,
)
_UNSCHEDULABLE = _section(
    "deprecated",
    (
        "pod-max-in-unschedulable-pods-duration",
        FlagKind.DURATION,
        Duration.of_seconds(300),
        "How long a pod stays unschedulable before it is tried again.",
    ),
)
_ELECTION = _section(
    "leader election",
    ("leader-elect", FlagKind.BOOL, True, "Take part in leader election."),
    ("leader-elect-lease-duration", FlagKind.DURATION, Duration.of_seconds(15), "How long a lease lasts."),
    ("leader-elect-renew-deadline", FlagKind.DURATION, Duration.of_seconds(10), "When to give up renewing."),
    ("leader-elect-retry-period", FlagKind.DURATION, Duration.of_seconds(2), "The pause between attempts."),
    ("leader-elect-resource-lock", FlagKind.STRING, "leases", "The kind of lock; only leases exist."),
    ("leader-elect-resource-name", FlagKind.STRING, "kube-scheduler", "The lock's name."),
    ("leader-elect-resource-namespace", FlagKind.STRING, "kube-system", "The lock's namespace."),
)
_GATES = _section(
    "feature gate",
    ("feature-gates", FlagKind.STRINGS, (), "Pairs such as GenericWorkload=true."),
    ("emulated-version", FlagKind.STRINGS, (), "The release whose feature defaults apply."),
    ("min-compatibility-version", FlagKind.STRINGS, (), "The oldest release to get along with."),
)
_METRICS = _section(
    "metrics",
    ("disabled-metrics", FlagKind.STRINGS, (), "Metrics to leave out."),
)
_METRICS_WITHOUT_EFFECT = _section(
    "metrics",
    ("allow-metric-labels", FlagKind.STRINGS, (), "Label values to tell apart."),
    ("allow-metric-labels-manifest", FlagKind.STRING, "", "A file with label values to tell apart."),
    ("show-hidden-metrics-for-version", FlagKind.STRING, "", "Show what that release has hidden."),
    effect=Effect.NONE,
)
_LOGS = [
    Flag("v", FlagKind.INT, 0, "The verbosity of logs.", "logs", short="v"),
    Flag("logging-format", FlagKind.STRING, "text", "How logs look.", "logs", choices=("text", "json")),
]
_LOGS_WITHOUT_EFFECT = _section(
    "logs",
    ("vmodule", FlagKind.STRINGS, (), "Verbosity by source file."),
    ("log-flush-frequency", FlagKind.DURATION, Duration.of_seconds(5), "How often logs are flushed."),
    ("log-text-split-stream", FlagKind.BOOL, False, "Errors to another stream."),
    ("log-text-info-buffer-size", FlagKind.STRING, "0", "How much to buffer."),
    ("log-json-split-stream", FlagKind.BOOL, False, "Errors to another stream."),
    ("log-json-info-buffer-size", FlagKind.STRING, "0", "How much to buffer."),
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
