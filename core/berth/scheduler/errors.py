"""What keeps a scheduler from starting, beside what config and client say of their inputs; how one ends."""


class StartError(Exception):
    """An input of the process is unusable; the text names it and the remedy."""


class FinishedError(Exception):
    """The process ended in order, and says so as kube-scheduler does without an election: with exit status 1.

    Source: cmd/kube-scheduler/app/server.go Run (Kubernetes v1.36).
    """


class LoopBusyError(Exception):
    """The scheduling loop did not answer in time; the request may be repeated."""


class TooManyReviewsError(Exception):
    """More unknown clients came than the API server is asked about; the request may be repeated."""
