"""What keeps a scheduler from starting, beside what config and client say of their own inputs."""


class StartError(Exception):
    """An input of the process is unusable; the text names it and the remedy."""
