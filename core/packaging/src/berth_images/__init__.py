"""Container images as OCI layouts, built of locked Debian packages and wheels: docs/decisions/0037-images.md.

    recipe ─▶ build ─┬─ bases: layers of Debian packages, by debian, of the lock that locking writes
                     ├─ python_packages: layers of wheels, by uv, of a pylock.toml
                     ├─ bytecode: both compiled by the base's own interpreter
                     └─ layout: blobs and indexes ─▶ documents: SBOM and provenance

Nothing of an image is run to build it, but for Python's interpreter, and nothing needs root.
"""
