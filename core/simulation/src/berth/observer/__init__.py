"""A live cluster's events as files, recorded from outside, and what Berth decides in their place.

    watches --> Observer --> files that rotate --+
                                                 +--> events --> replay: each binding, and Berth's own choice
    kube-scheduler-simulator's recording --------+

Called by: `berth record`, `berth simulate replay`.

Why there are two kinds of recordings: docs/decisions/0036-recording-a-day.md.
"""
