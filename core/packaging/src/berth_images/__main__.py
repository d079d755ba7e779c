"""`python -m berth_images`."""

from berth_images.cli import main

main(prog_name="berth-images")
