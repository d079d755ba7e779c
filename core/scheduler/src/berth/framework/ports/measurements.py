"""Where a part counts and measures, by the name of the metric; telemetry shows what comes of it."""


class Measurements:
    """Counters and histograms by name. This class keeps nothing: for a core without telemetry.

    Metrics that the followed release does not have are passed over, and labels that it does not have yet,
    which are the last ones, are cut off.
    """

    def exports(self, name: str) -> bool:
        """Whether there is a metric of that name."""
        del name
        return False

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter; by 0, to have its series exported before anything is counted."""

    def observe(self, name: str, value: float, *labels: str, times: int = 1) -> None:
        """Observe a value in a histogram this many times."""


NO_MEASUREMENTS = Measurements()
