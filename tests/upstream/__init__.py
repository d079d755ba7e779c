"""The watch on upstream: what it changed, release by release, and what each change is here.

`python -m tests.upstream` reads changes.tsv beside this file, a line a change:

    release  number  subject  state  evidence

`number` is a KEP (KEP-5963) or a pull request of kubernetes/kubernetes (#140047). `state` is one of STATES.
`evidence` is a test (FILE::NAME) or a page (docs/...), from the root of the repository. Every feature gate
that a followed release brings, and every rule of berth.config.releases, has a line.
"""
