"""The event resource of a plugin's own requeues: its name with this suffix."""

REQUEUE_EVENT_SUFFIX = ".news.plugins.berth.dev"
