"""Floor 6: the main job: a whole cluster on one machine, its pods scheduled, checked and reported."""
