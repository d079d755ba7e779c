"""Local mirrors of one kind of object each: lists, watches, and what cannot be decoded."""
