"""`make manifests`: the files of kustomize that are made of the operator's definitions."""
