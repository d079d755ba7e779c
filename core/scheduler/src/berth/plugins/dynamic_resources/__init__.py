"""DynamicResources: allocate devices that drivers publish to the claims of pods.

    plugin            the extension points
    claims, asking    which claims a pod has, and what they ask for
    extended_resources  the claim that is made for resources which devices stand behind
    inventory, usage  which devices there are, which nodes reach them, and what is in use
    allocator         the search; capacity, constraints and cel say what suits
    filtering         a question for each pod, asked once for nodes that reach the same devices
    allocation, binding, binding_conditions  from the devices found to the claims as written
    hints             what may help pods that wait

Source: pkg/scheduler/framework/plugins/dynamicresources (Kubernetes v1.36).
"""

from berth.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
