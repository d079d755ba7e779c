"""A file's text to the fields that it sets, with Go's strictness and words.

    text ─ document: YAML (nodes, scalars, values) or JSON ─► tree ─► envelope ─► wire_decoder, by schema

Called by: loading, and by readers of Berth's own documents.
"""
