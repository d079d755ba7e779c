"""Write Berth scheduler plugins as plain Python functions."""
