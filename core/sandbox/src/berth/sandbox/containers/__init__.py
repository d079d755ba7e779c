"""Containers of chosen images as real processes on this machine, started from the pods that were given.

    pod ─▶ pod_run ─▶ folders (volumes), environment ─▶ container (process, restarts) ◀─ probes

What differs from a container, and is done so on purpose:
- Images are commands of this machine (`--run-image PATTERN=COMMAND`).
- There is no mount namespace: each container has a folder that stands for its root, with its mounts in it.
  Where a mount path occurs in arguments, environment and mounted ConfigMaps, that folder is put before it;
  CONTAINER_SANDBOX_MOUNT_POINT names the folder, as it does on Windows nodes.
- There is no network namespace: a pod's address is one of 127.64.0.0/10, and becomes what 0.0.0.0 in an
  argument means.
- Users, capabilities and resource limits are those of the sandbox itself.
"""

from berth.sandbox.containers.images import Images
from berth.sandbox.containers.pod_runs import PodRuns

__all__ = ["Images", "PodRuns"]
