"""Profiles and extenders, as KubeSchedulerConfiguration has them.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go (Kubernetes v1.36).
"""

from berth.config.catalogue import ExtensionPoint
from berth.operator.definitions.schema import (
    Schema,
    choice,
    duration,
    fields,
    flag,
    free,
    integer,
    keyed,
    listed,
    rule,
    text,
)

MAX_PROFILES = 32
_MAX_PLUGINS = 64


def profiles() -> Schema:
    """The list of profiles, distinguished by scheduler name."""
    return keyed(
        _profile(),
        "schedulerName",
        "One profile for each schedulerName: pods that name it are scheduled by this profile.",
        most=MAX_PROFILES,
        minItems=1,
    )


def _profile() -> Schema:
    set_of = {point: _plugin_set(point) for point in ("multiPoint", *map(str, ExtensionPoint))}
    arguments = fields(
        {
            "name": text("The plugin's name, such as NodeResourcesFit.", shortest=1),
            "args": free(
                "Its arguments as kube-scheduler takes them, such as NodeResourcesFitArgs; its own "
                "defaults if not given."
            ),
        },
        required=("name",),
    )
    return fields(
        {
            "schedulerName": text(
                "The name that pods give as their spec.schedulerName.",
                shortest=1,
                default="default-scheduler",
            ),
            "percentageOfNodesToScore": integer(
                "The percentage of the nodes at which the search for feasible ones ends; the scheduler's if "
                "not given.",
                least=0,
                most=100,
            ),
            "plugins": fields(
                set_of, "Which plugins take part, by extension point; kube-scheduler's default if not given."
            ),
            "pluginConfig": keyed(
                arguments,
                "name",
                "Arguments of plugins; kube-scheduler's defaults for those not given.",
                most=_MAX_PLUGINS,
            ),
        }
    )


def _plugin_set(point: str) -> Schema:
    weighed = {
        "name": text("The plugin's name; that of a SchedulerPlugin is one, too.", shortest=1),
        "weight": integer("What its scores are multiplied by; 1 if 0 or not given.", least=0),
    }
    one_star = rule(
        "!self.exists(p, p.name == '*') || self.size() == 1",
        "'*' switches everything off; remove the other entries of `disabled`, or '*'",
    )
    return fields(
        {
            "enabled": keyed(
                fields(weighed, required=("name",)),
                "name",
                "Plugins that take part, in this order, after those that do by default; none if not given.",
                most=_MAX_PLUGINS,
                rules=[
                    rule("!self.exists(p, p.name == '*')", "name each plugin; '*' works in `disabled` only")
                ],
            ),
            "disabled": keyed(
                fields({"name": text("The plugin's name, or * for all.", shortest=1)}, required=("name",)),
                "name",
                "Plugins that take part by default and are left out; none if not given.",
                most=_MAX_PLUGINS,
                rules=[one_star],
            ),
        },
        f"Plugins at {point} alone; it takes precedence over multiPoint."
        if point != "multiPoint"
        else "Plugins at every extension point that they implement.",
    )


def extenders() -> Schema:
    """The list of HTTP extenders."""
    about = {
        "cert": "The certificate that the scheduler shows, none if not given",
        "key": "The key of that certificate, none if not given",
        "ca": "The authority of the extender's certificate, the system's if not given",
    }
    tls = fields(
        {
            "insecure": flag("Whether the extender's certificate is not verified; false if not given."),
            "serverName": text("The name in its certificate; that of urlPrefix if not given."),
            **{f"{name}File": text(f"{what}: a file in PEM.", longest=4096) for name, what in about.items()},
            **{
                f"{name}Data": text(
                    f"{what}: PEM as base64; takes precedence over the file.", longest=65536, format="byte"
                )
                for name, what in about.items()
            },
        },
        "How the extender's certificate is verified, and which certificate the scheduler shows.",
    )
    managed = fields(
        {
            "name": text("The name of an extended resource, such as example.com/gpu.", shortest=1),
            "ignoredByScheduler": flag("Whether NodeResourcesFit leaves it out; false if not given."),
        },
        required=("name",),
    )
    verbs = {
        f"{verb}Verb": text(f"The path at which it is asked to {verb}; never asked if empty.", longest=128)
        for verb in ("filter", "preempt", "prioritize", "bind")
    }
    extender = fields(
        {
            "urlPrefix": text(
                "The extender's URL, to which the paths of the verbs are appended.",
                longest=2048,
                rules=[
                    rule(
                        "self.matches('^https?://')",
                        "write the whole URL, beginning with http:// or https://",
                    )
                ],
            ),
            **verbs,
            "weight": integer("What its scores are multiplied by; required with prioritizeVerb.", least=1),
            "enableHTTPS": flag("Whether it is reached over HTTPS; false if not given."),
            "tlsConfig": tls,
            "httpTimeout": duration("How long an answer may take; 5s if not given."),
            "nodeCacheCapable": flag("Whether it is sent names instead of nodes; false if not given."),
            "managedResources": listed(
                managed,
                "Resources that it manages: it is asked about pods that request one of them; about all pods "
                "if not given.",
                most=32,
            ),
            "ignorable": flag("Whether pods are scheduled without it while it fails; false if not given."),
        },
        required=("urlPrefix",),
        rules=[
            rule(
                "!has(self.prioritizeVerb) || self.prioritizeVerb == '' || has(self.weight)",
                "an extender that prioritizes needs a weight of 1 or more",
                ".weight",
            )
        ],
    )
    binding = rule(
        "self.filter(e, has(e.bindVerb) && e.bindVerb != '').size() <= 1",
        "only one extender can bind; remove bindVerb from the others",
    )
    return listed(
        extender,
        "HTTP extenders in the order in which they are called, as kube-scheduler's; none if not given.",
        most=16,
        rules=[binding],
    )


def policy_choice(about: str = "") -> Schema:
    """What a failing call means."""
    return choice(("Fail", "Ignore"), about)
