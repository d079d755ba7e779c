"""Status and conditions of Schedulers and SchedulerPlugins, and the events and log lines of their changes."""
