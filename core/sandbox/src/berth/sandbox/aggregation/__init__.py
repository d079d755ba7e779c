"""API groups that other servers serve, behind this one: APIServices, and the way to what they name.

    APIService ─► checked every few seconds ─► condition Available, resources in discovery
    request below /apis/GROUP/VERSION ─► who, and may they ─► pod behind the Service, as the front proxy

Source: staging/src/k8s.io/kube-aggregator/pkg (v1.36).
"""

from berth.sandbox.aggregation.api_services import Aggregation
from berth.sandbox.aggregation.front_proxy import FrontProxy

__all__ = ["Aggregation", "FrontProxy"]
