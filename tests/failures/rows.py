"""The ways to fail, by part: the name by which tests mark them, and what fails."""

PARTS = {
    "Plugins in other processes": {
        "score-ignored": "Score fails, in any way, and the failure policy is `Ignore` (the default)",
    },
}
