"""What the operator was installed with that schedulers take over."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's choices for schedulers that make none, and what it found in the cluster."""

    image: str
    authority: str = ""
    """Certificates that clients of schedulers are to trust, in PEM."""
    service_monitors: bool = False
    role: str = "berth-scheduler"
    """The name of the role that all schedulers need, and the beginning of the others'."""
    priority_class: str = "berth-critical"
