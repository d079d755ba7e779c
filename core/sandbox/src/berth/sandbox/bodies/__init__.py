"""From a request's body to a document: JSON, YAML or protobuf, checked by the published schemas."""
