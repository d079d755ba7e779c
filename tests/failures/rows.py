"""The ways to fail, by part: the name by which tests mark them, and what fails."""

PARTS = {
    "Pods on their way to a node": {
        "pod-pending": "a pod fits on no node, is gated, or waits for its group",
        "devices-missing": "the devices of a claim can't be allocated",
        "pre-bind-fails": "PreBind fails: a volume that could not be provisioned, a write that was refused",
        "nothing-binds": "no Bind plugin and no extender binds the pod",
        "permit-waits": "a plugin keeps the pod at Permit, such as a gang's",
        "pre-bind-waits": "PreBind takes long: a volume that is not provisioned, devices, a plugin",
        "post-bind-fails": "PostBind of a plugin of this process fails",
        "attempt-breaks": "a plugin of this process, or the scheduler itself, breaks in an attempt",
        "group-fails": "a pod group does not fit, or its attempt breaks",
        "gang-waits": "a pod of a gang waits for minCount, because of what another pod of it lacks",
    },
    "HTTP extenders": {
        "extender-ignored": "an extender that is ignorable fails, or one that scores",
    },
    "API server": {
        "not-listed": "a kind can't be listed, so that scheduling does not begin",
        "object-set-aside": "an object can't be taken in, for what is written in it or for a bug",
        "nomination-not-written": "a nomination can't be written",
        "status-not-written": "a pod's status can't be written",
        "watch-breaks": "a list or watch is refused, or breaks off, later",
        "events-dropped": "more events wait to be written than are kept",
        "events-refused": "an event is refused, or twelve tries fail",
    },
    "Leases": {
        "lease-lost": "a lease can't be acquired or renewed: refused, or not answered",
    },
    "Plugins in other processes": {
        "attach-refused": "a plugin refuses its arguments at `attach`, in a further profile: nothing changes",
        "arguments-refused": "a plugin that runs, or starts anew, refuses arguments of its list or "
        "SchedulerPlugin: those before serve, also in the next pod of the scheduler",
        "arguments-lose": "arguments of an entry lose against a profile's pluginConfig",
        "handshake-wrong": "a plugin's handshake is refused: its name, its version, what it announces",
        "kind-not-listed": "a kind that a plugin wants to see is not there, or not to be listed",
        "plugin-late": "a plugin is slow, or hangs",
        "action-fails": "Reserve, Permit or PreBind of a plugin fails",
        "hints-fail": "a plugin's queueing hints fail",
        "sort-keys-fail": "sort keys of a plugin that orders the queue fail",
        "gate-fails": "PreEnqueue of a plugin fails",
        "plugin-away": "no process answers at a plugin's address",
        "plugin-garbled": "a plugin's answers break the protocol",
        "score-ignored": "Score fails, in any way, and the failure policy is `Ignore` (the default)",
    },
    "Configuration": {
        "config-wrong": "a KubeSchedulerConfiguration is wrong",
        "list-wrong": "the list of plugins is wrong when it changes",
        "list-away": "the list of plugins can't be read",
        "list-entry-fails": "an entry of the list can't be had",
    },
    "Operator": {
        "scheduler-spec-wrong": "a Scheduler's spec is one that no scheduler would start with",
        "plugin-missing": "a Scheduler names a SchedulerPlugin that is not there",
        "apply-refused": "the API server refuses an object that a Scheduler needs",
        "pods-not-running": "a Scheduler's pods are not made, not placed, or end",
        "sidecar-not-running": "a plugin's sidecar does not run, or its scheduler does not have it ready",
        "mount-fails": "a volume of a Scheduler's pod can't be mounted",
    },
    "Descheduler": {
        "descheduling-fails": "a Job of a Scheduler's descheduler fails",
        "eviction-refused": "an eviction is refused, by a budget or otherwise",
    },
    "Answers, traces, pages": {
        "answer-refused": "a command reaches no scheduler, or gets no answer",
        "no-api-service": "explanations through the API server have no ready scheduler",
        "recording-ends": "the recording of a scheduler can't be written",
        "live-page-away": "the scheduler behind the live page does not answer",
        "traces-not-exported": "a collector does not take traces",
    },
}
