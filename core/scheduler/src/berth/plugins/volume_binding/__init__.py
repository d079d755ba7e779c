"""VolumeBinding: a pod goes where its volumes are or can be made, and takes them with it.

    PreFilter: the pod's claims, bound or waiting for it (pod_claims)
    Filter:    for all nodes, bound volumes in reach, free volumes (matching) or new ones (provisioning)
    Reserve:   the chosen node's volumes and claims are assumed taken
    PreBind:   they are written, and the pod waits until every claim is bound (binding)

Source: pkg/scheduler/framework/plugins/volumebinding (Kubernetes v1.36).
"""

from berth.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
