"""How a scheduler process ends, beside what its inputs make of it."""


class FinishedError(Exception):
    """The process ended in order, and says so as kube-scheduler does without an election: with exit status 1.

    Source: cmd/kube-scheduler/app/server.go Run (Kubernetes v1.36).
    """
