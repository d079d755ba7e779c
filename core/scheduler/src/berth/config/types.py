"""The typed configuration: kubescheduler.config.k8s.io/v1 with every default filled in.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go (Kubernetes v1.36).
"""

from typing import Annotated, ClassVar

import msgspec

from berth.config.duration import Duration
from berth.config.wire import (
    Data,
    Embedded,
    Flag,
    Float32,
    Int32,
    Int64,
    RawJson,
    Section,
    Span,
    Text,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class LeaderElection(Section, frozen=True):
    """Whether and by which lease one of several schedulers is made the active one."""

    GO: ClassVar[str] = "v1alpha1.LeaderElectionConfiguration"

    leader_elect: Flag = True
    lease_duration: Span = Duration.of_seconds(15)
    renew_deadline: Span = Duration.of_seconds(10)
    retry_period: Span = Duration.of_seconds(2)
    resource_lock: Text = "leases"
    resource_name: Text = "kube-scheduler"
    resource_namespace: Text = "kube-system"


class ClientConnection(Section, frozen=True):
    """How the API server is reached; a negative qps means no limit on the client's side."""

    GO: ClassVar[str] = "v1alpha1.ClientConnectionConfiguration"

    kubeconfig: Text = ""
    accept_content_types: Text = ""
    content_type: Text = "application/vnd.kubernetes.protobuf"
    qps: Float32 = 50.0
    burst: Int32 = 100


class PluginEntry(Section, frozen=True):
    """A plugin and its weight; None where no weight was written."""

    GO: ClassVar[str] = "v1.Plugin"

    name: Text = ""
    weight: Int32 | None = None


class PluginSet(Section, frozen=True):
    """What is switched on and off at one extension point."""

    GO: ClassVar[str] = "v1.PluginSet"

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(Section, frozen=True):
    """A plugin set for each extension point, and for all points at once."""

    GO: ClassVar[str] = "v1.Plugins"

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()


class PluginConfig(Section, frozen=True):
    """A plugin's arguments: a struct of `plugin_args`, or plain JSON for any other plugin."""

    GO: ClassVar[str] = "v1.PluginConfig"

    name: Text = ""
    args: RawJson = None


class Profile(Section, frozen=True):
    """What pods with this scheduler name are scheduled by; a percentage of None inherits the global one."""

    GO: ClassVar[str] = "v1.KubeSchedulerProfile"

    scheduler_name: Text = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTls(Section, frozen=True):
    """How an extender is authenticated; data wins over files."""

    GO: ClassVar[str] = "v1.ExtenderTLSConfig"

    insecure: Flag = False
    server_name: Text = ""
    cert_file: Text = ""
    key_file: Text = ""
    ca_file: Text = ""
    cert_data: Data = b""
    key_data: Data = b""
    ca_data: Data = b""


class ManagedResource(Section, frozen=True):
    """A resource that an extender looks after."""

    GO: ClassVar[str] = "v1.ExtenderManagedResource"

    name: Text = ""
    ignored_by_scheduler: Flag = False


class ExtenderConfig(Section, frozen=True):
    """A webhook that takes part in scheduling; an empty verb is not called."""

    GO: ClassVar[str] = "v1.Extender"

    url_prefix: Text = ""
    filter_verb: Text = ""
    preempt_verb: Text = ""
    prioritize_verb: Text = ""
    weight: Int64 = 0
    bind_verb: Text = ""
    enable_https: Flag = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTls | None = None
    http_timeout: Span = Duration(0)
    node_cache_capable: Flag = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: Flag = False


class SchedulerConfiguration(Section, frozen=True):
    """A whole KubeSchedulerConfiguration."""

    GO: ClassVar[str] = "v1.KubeSchedulerConfiguration"

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: Annotated[Flag, Embedded("DebuggingConfiguration")] = True
    enable_contention_profiling: Annotated[Flag, Embedded("DebuggingConfiguration")] = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: Flag = False
