"""http-extender: ask a scheduler extender of kube-scheduler's HTTP protocol, through the plugin protocol."""

from berth_http_extender.plugin import HttpExtender

__all__ = ["HttpExtender"]
