"""What stops a build."""


class ImageError(Exception):
    """An image cannot be built or read; the text names the file and the remedy."""
