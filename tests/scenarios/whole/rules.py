"""What a concurrent implementation has to keep together: section 9.8."""

RULES = {
    "9.8.1": "a move pass with its event, against the return of a failed pod",
    "9.8.2": "replaying events, parking and Done, against move passes",
    "9.8.3": "a pop with its marker, against an update of the pod",
    "9.8.4": "cache operations and the snapshot's update; the snapshot is fixed within a cycle",
    "9.8.5": "assume, Reserve and Permit end before the next pop",
    "9.8.6": "the first outcome of a waiting pod wins",
    "9.8.7": "no order between pods, nodes and other kinds",
}
