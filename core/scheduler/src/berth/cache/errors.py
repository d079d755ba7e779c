"""What can be wrong with a call of the cache.

CacheError
├── PodStateError         the pod is not in the state that the call needs: log it and go on
└── CacheCorruptedError   cache and watch contradict each other: no decision can be trusted, exit
"""


class CacheError(Exception):
    """A call that the cache refuses; it has changed nothing."""


class PodStateError(CacheError):
    """The pod is unknown, or known in another state."""


class CacheCorruptedError(CacheError):
    """A placed pod is said to be on another node than the one it was seen on."""
