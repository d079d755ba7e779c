"""Plugins of this process alone: there is no other process to be asked."""

from berth.scheduler.plugin_source import InProcessPlugins


def test_open_hints_are_answered_at_once():
    """A pod whose hint nothing can answer is queued."""
    answered = []
    InProcessPlugins({}).ask_hints(["one", "two"], answered.extend)

    assert ["one", "two"] == answered
