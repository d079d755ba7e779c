"""`python -m berth.cli`: the `berth` command where the script is not on PATH."""

from berth.cli.main import main

main()
