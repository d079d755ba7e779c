"""The errors that end a scheduler process, other than those of its input."""


class FinishedError(Exception):
    """The process ended in order, and says so as kube-scheduler does without an election: with exit status 1.

    Source: cmd/kube-scheduler/app/server.go Run (Kubernetes v1.36).
    """
