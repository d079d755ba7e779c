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
        "What pods are scheduled by, one profile for each scheduler name.",
        most=MAX_PROFILES,
        minItems=1,
    )


def _profile() -> Schema:
    set_of = {point: _plugin_set(point) for point in ("multiPoint", *map(str, ExtensionPoint))}
    arguments = fields(
        {
            "name": text("The plugin.", shortest=1),
            "args": free("Its arguments, as kube-scheduler takes them."),
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
                "How many feasible nodes are enough; the scheduler's if not given.", least=0, most=100
            ),
            "plugins": fields(set_of, "What is switched on and off, by extension point."),
            "pluginConfig": keyed(arguments, "name", "Arguments of plugins.", most=_MAX_PLUGINS),
        }
    )


def _plugin_set(point: str) -> Schema:
    weighed = {
        "name": text("The plugin.", shortest=1),
        "weight": integer("How much its scores count; 1 if 0 or not given.", least=0),
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
                "Plugins that are switched on, in this order, after those that are on by default.",
                most=_MAX_PLUGINS,
                rules=[
                    rule("!self.exists(p, p.name == '*')", "name each plugin; '*' works in `disabled` only")
                ],
            ),
            "disabled": keyed(
                fields({"name": text("The plugin; * for all.", shortest=1)}, required=("name",)),
                "name",
                "Plugins of the default that are switched off.",
                most=_MAX_PLUGINS,
                rules=[one_star],
            ),
        },
        f"Plugins at {point}." if point != "multiPoint" else "Plugins at every point that they implement.",
    )


def extenders() -> Schema:
    """The list of HTTP extenders."""
    files = {"certFile": "The client's certificate", "keyFile": "Its key", "caFile": "The authority"}
    data = {"certData": "The client's certificate", "keyData": "Its key", "caData": "The authority"}
    tls = fields(
        {
            "insecure": flag("Whether the extender's certificate is not verified; false if not given."),
            "serverName": text("The name in its certificate; that of urlPrefix if not given."),
            **{name: text(f"{about}, a file in PEM.", longest=4096) for name, about in files.items()},
            **{
                name: text(f"{about} in PEM, as base64; wins over the file.", longest=65536, format="byte")
                for name, about in data.items()
            },
        },
        "How its server is verified, and who the scheduler is to it.",
    )
    managed = fields(
        {
            "name": text("The resource.", shortest=1),
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
                "Where it is reached.",
                longest=2048,
                rules=[
                    rule(
                        "self.matches('^https?://')",
                        "write the whole URL, beginning with http:// or https://",
                    )
                ],
            ),
            **verbs,
            "weight": integer("How much its scores count.", least=1),
            "enableHTTPS": flag("Whether it is spoken to by HTTPS; false if not given."),
            "tlsConfig": tls,
            "httpTimeout": duration("How long an answer may take; 5s if not given."),
            "nodeCacheCapable": flag("Whether it is sent names instead of nodes; false if not given."),
            "managedResources": listed(
                managed,
                "It is asked about pods that request one of these; about all if there are none.",
                most=32,
            ),
            "ignorable": flag("Whether pods are scheduled without it when it does not answer."),
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
    return listed(extender, "HTTP extenders, in calling order.", most=16, rules=[binding])


def policy_choice(about: str = "") -> Schema:
    """What a failing call means."""
    return choice(("Fail", "Ignore"), about)
