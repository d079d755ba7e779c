"""Image names in the form in which nodes and pods are compared.

Source: spec/plugins.md 5.16.
"""


def normalized_image_name(name: str) -> str:
    """The name with `:latest` where it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
