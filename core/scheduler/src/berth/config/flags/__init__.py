"""The command line of a scheduler: kube-scheduler's flags and feature gates, and Berth's own."""
