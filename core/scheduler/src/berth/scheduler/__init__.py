"""Floor 6: the scheduler process: wiring, serving, leader election."""
