"""Image names in the form in which nodes and pods are compared.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go normalizedImageName (Kubernetes
v1.36).
"""


def normalized_image_name(name: str) -> str:
    """The name with `:latest` where it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
