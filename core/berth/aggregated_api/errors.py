"""What keeps an object from being explained, by what the client does next."""


class NoSuchObjectError(Exception):
    """Give up: there is no such object, or no scheduler here has to do with it."""


class UnavailableError(Exception):
    """Try again: the scheduler that knows the object can't be asked now."""
