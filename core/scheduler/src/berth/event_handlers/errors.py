"""What a handler may raise.

FollowUpError     the object is taken in, but what follows from it failed: go on
any other         the object is not taken in, and nothing has changed
"""


class FollowUpError(Exception):
    """Pods were not retried, or not taken out of the queue: cache and stores are right."""
