"""The files of a run, all in one folder: configuration, kubeconfig, socket, logs, traces."""

from pathlib import Path

import msgspec

SCHEDULER_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {kubeconfig}
  qps: -1
leaderElection:
  leaderElect: true
profiles:
- schedulerName: default-scheduler
- schedulerName: bin-packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
- schedulerName: gpu-share
  plugins:
    multiPoint:
      enabled:
      - name: gpu-share
        weight: 5
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
"""

PLUGIN_LIST = """\
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- name: gpu-share
  address: unix:{socket}
"""


class RunFiles(msgspec.Struct, frozen=True):
    """Where everything of a run is."""

    folder: Path
    sockets: Path
    """A private folder with a short path: a unix socket's may have about 100 characters."""

    @property
    def kubeconfig(self) -> Path:
        """How to reach the sandbox."""
        return self.folder / "kubeconfig"

    @property
    def configuration(self) -> Path:
        """The scheduler's configuration."""
        return self.folder / "scheduler.yaml"

    @property
    def plugins(self) -> Path:
        """The list of sidecars."""
        return self.folder / "plugins.yaml"

    @property
    def traces(self) -> Path:
        """The traces, a span a line; scheduler and sidecar write into the same file."""
        return self.folder / "traces.jsonl"

    @property
    def socket(self) -> Path:
        """Where the sidecar listens."""
        return self.sockets / "gpu-share.sock"

    def log(self, name: str) -> Path:
        """A process's log."""
        return self.folder / f"{name}.log"

    def prepare(self) -> None:
        """Make the folder, forget an earlier run, write the configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for stale in (self.kubeconfig, self.traces):
            stale.unlink(missing_ok=True)
        self.configuration.write_text(
            SCHEDULER_CONFIGURATION.format(kubeconfig=self.kubeconfig.absolute()), encoding="utf-8"
        )
        self.plugins.write_text(PLUGIN_LIST.format(socket=self.socket.absolute()), encoding="utf-8")
