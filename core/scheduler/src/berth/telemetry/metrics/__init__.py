"""The scheduler's metrics, by upstream's names and Berth's own."""
