"""The version of Berth, which all its distributions share."""


def version() -> str:
    """Give the version of the installed berth-scheduler."""
    # Imported where it is asked for: it takes 30 ms of CPU to import, and most processes never ask.
    from importlib import metadata  # noqa: PLC0415 (see above)

    return metadata.version("berth-scheduler")
