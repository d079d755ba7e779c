"""The API group explain.berth.dev, served as an aggregated API server serves its own.

    kubectl ─► kube-apiserver ─► secure port: client certificate ─► front_proxy: the user behind it
                                     └─► request_info: which object ─► access review ─► pages ─► routing
                                            routing: answered here, or by the replica that leads (leaders)

Called by: scheduler/, which authorizes requests and knows what explains a pod.
docs/decisions/0031-explanations-through-the-api-server.md
"""
