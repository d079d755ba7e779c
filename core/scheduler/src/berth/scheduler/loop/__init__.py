"""The scheduling loop and what runs beside it: turns, pauses, background work, the control thread."""
