"""What is in the scheduling queue, and the events that move it on."""
