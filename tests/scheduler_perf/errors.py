"""What can be wrong with a tree, or with playing it."""


class PerfError(Exception):
    """Something of the tree or of a run, with the file, the field and the remedy."""


class NotPlayedError(PerfError):
    """A workload that cannot be played here, and why; the others are."""
