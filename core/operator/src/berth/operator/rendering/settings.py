"""What the operator was installed with that schedulers take over."""

import msgspec

from berth.config.releases.release import DEFAULT, Release


class SchedulerDefaults(msgspec.Struct, frozen=True):
    """The operator's choices for schedulers that make none, and what it found in the cluster."""

    image: str
    authority: str = ""
    """Certificates that clients of schedulers are to trust, in PEM."""
    service_monitors: bool = False
    release: Release = DEFAULT
    """The release of Kubernetes that schedulers follow: the API server's."""
    role: str = "berth-scheduler"
    """The name of the role that all schedulers need."""
    affinity_role: str = "berth-scheduler-affinity"
    """The name of the role of the group `affinity`; those of other groups are called like it."""
    priority_class: str = "berth-critical"
    descheduler_image: str = ""
    explain_service: str = ""
    """The Service that an APIService names, in the operator's namespace; empty where there is none."""

    def role_of(self, group: str) -> str:
        """Give the name of a group's role: a kustomization may have put something before it and behind it."""
        before, _, behind = self.affinity_role.rpartition("-affinity")
        return f"{before}-{group}{behind}"
