"""What keeps a pod from being explained, by what the client does next."""


class NoSuchPodError(Exception):
    """Give up: there is no such pod, or no scheduler here has to do with it."""


class UnavailableError(Exception):
    """Try again: the scheduler that knows the pod can't be asked now."""
