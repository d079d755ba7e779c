"""What a plugin's own news are called among the resources that events come from: this, behind its name."""

REQUEUE_EVENT_SUFFIX = ".news.plugins.berth.dev"
