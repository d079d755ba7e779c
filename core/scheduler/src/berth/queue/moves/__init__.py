"""What moves pods between the parts of the queue: events, failed attempts, time, gates, their groups."""
