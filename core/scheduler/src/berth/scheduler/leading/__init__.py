"""Who schedules a shard: the election, the fence behind it, and the loop in front of it."""
