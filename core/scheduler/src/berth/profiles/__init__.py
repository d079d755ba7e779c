"""Floor 2: profiles, each a schedulerName wired to its plugins."""
