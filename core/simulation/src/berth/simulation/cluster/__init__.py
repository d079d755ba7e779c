"""A cluster in memory, in virtual time, with the effects of its controllers."""
