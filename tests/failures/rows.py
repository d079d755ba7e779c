"""The ways to fail, by part: the name by which tests mark them, and what fails."""

PARTS = {
    "Pods on their way to a node": {
        "permit-waits": "a plugin keeps the pod at Permit, such as a gang's",
        "pre-bind-waits": "PreBind takes long: a volume that is not provisioned, devices, a plugin",
        "gang-waits": "a pod of a gang waits for minCount, because of what another pod of it lacks",
    },
    "Leases": {
        "lease-lost": "a lease can't be acquired or renewed: refused, or not answered",
    },
    "Plugins in other processes": {
        "attach-refused": "a plugin refuses its arguments at `attach`, in a further profile: nothing changes",
        "arguments-refused": "a plugin that runs, or starts anew, refuses arguments of its list or "
        "SchedulerPlugin: those before serve, also in the next pod of the scheduler",
        "arguments-lose": "arguments of an entry lose against a profile's pluginConfig",
        "plugin-away": "no process answers at a plugin's address",
        "plugin-garbled": "a plugin's answers break the protocol",
        "score-ignored": "Score fails, in any way, and the failure policy is `Ignore` (the default)",
    },
}
