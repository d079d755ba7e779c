"""A cluster in memory and in virtual time, with what its controllers do."""
