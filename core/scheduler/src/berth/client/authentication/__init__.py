"""Who the client is and which server it trusts: kubeconfig, flags, or a pod's service account."""
