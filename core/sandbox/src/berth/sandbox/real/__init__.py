"""A real kube-apiserver and etcd in the sandbox's place, with the same fake kubelets.

    assets ─▶ arguments ─▶ processes ─▶ cluster: ready, kubeconfig, loading.py, kubelets.py over the API

For those who have the programs, as users of envtest do. Nothing here serves anything itself.
"""

from berth.sandbox.real.assets import Assets, find_assets
from berth.sandbox.real.cluster import RealCluster, RealOptions, serve_real

__all__ = ["Assets", "RealCluster", "RealOptions", "find_assets", "serve_real"]
