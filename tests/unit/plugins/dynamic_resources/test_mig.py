"""Partitions of an NVIDIA A100 as its DRA driver publishes them: placements share what the card has.

Two slices a pool: one with the counters of each card, one with devices that consume them. A placement takes
multiprocessors, copy engines, memory, and its memory slices by number.

Source: the ResourceSlices of NVIDIA's driver gpu.nvidia.com; KEP-4815, its MIG example.
"""

import pytest

from tests.unit.plugins.dynamic_resources.kit import Cluster, claiming, make_claim, make_class, make_slice

DRIVER = "gpu.nvidia.com"
SLICES = 8
PROFILES = {
    "1g.5gb": (1, "4864Mi", 1, range(7)),
    "2g.10gb": (2, "9856Mi", 2, (0, 2, 4)),
    "3g.20gb": (3, "19968Mi", 4, (0, 4)),
    "4g.20gb": (4, "19968Mi", 4, (0,)),
    "7g.40gb": (7, "40192Mi", 8, (0,)),
}
"""Of each profile the parts of compute, the memory, the memory slices, and where on the card it may begin."""


def counted(parts, memory, begin, slices):
    values = {"multiprocessors": str(14 * parts), "copy-engines": str(parts), "memory": memory}
    values |= {f"memory-slice-{number}": "1" for number in range(begin, begin + slices)}
    return {name: {"value": value} for name, value in values.items()}


def card(number):
    """The card as a whole, and each placement of each profile."""
    counters = f"gpu-{number}-counter-set"

    def device(name, kind, taken, **attributes):
        named = {"type": kind, "parentUUID": f"GPU-{number}", **attributes}
        return {
            "name": name,
            "attributes": {key: {"string": value} for key, value in named.items()},
            "consumesCounters": [{"counterSet": counters, "counters": taken}],
        }

    yield device(f"gpu-{number}", "gpu", counted(7, "40Gi", 0, SLICES))
    for profile, (parts, memory, slices, begins) in PROFILES.items():
        for begin in begins:
            name = f"gpu-{number}-mig-{profile.replace('.', '')}-{begin}"
            yield device(name, "mig", counted(parts, memory, begin, slices), profile=profile)


def node_slices(cards=1):
    pool = {"node": "n0", "pool": "n0", "slices": 2, "driver": DRIVER}
    counters = [
        {"name": f"gpu-{i}-counter-set", "counters": counted(7, "40Gi", 0, SLICES)} for i in range(cards)
    ]
    devices = [device for number in range(cards) for device in card(number)]
    return [
        make_slice("n0-counters", [], **pool, sharedCounters=counters),
        make_slice("n0-devices", devices, **pool),
    ]


def classes():
    """The classes that the driver's chart installs."""
    expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '{}'"
    kinds = (("gpu.nvidia.com", "gpu"), ("mig.nvidia.com", "mig"))
    return [
        make_class(name, selectors=[{"cel": {"expression": expression.format(kind)}}]) for name, kind in kinds
    ]


def wants(*profiles, **claim):
    """A claim with a request for each profile; `gpu` is a whole card."""

    def request(index, profile):
        exactly = {"deviceClassName": "gpu.nvidia.com"}
        if profile != "gpu":
            expression = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
            exactly = {
                "deviceClassName": "mig.nvidia.com",
                "selectors": [{"cel": {"expression": expression}}],
            }
        return {"name": f"r{index}", "exactly": exactly}

    return make_claim(requests=[request(index, profile) for index, profile in enumerate(profiles)], **claim)


def having(*profiles, cards=1, **claim):
    return Cluster(slices=node_slices(cards), classes=classes(), claims=[wants(*profiles, **claim)])


@pytest.mark.parametrize(
    ("profiles", "fits"),
    [
        (["1g.5gb"] * 7, True),
        (["1g.5gb"] * 8, False),
        (["3g.20gb", "3g.20gb"], True),
        (["4g.20gb", "3g.20gb"], True),
        (["4g.20gb", "4g.20gb"], False),
        (["3g.20gb", "3g.20gb", "1g.5gb"], False),
        (["4g.20gb", "2g.10gb", "1g.5gb"], True),
        (["7g.40gb"], True),
        (["7g.40gb", "1g.5gb"], False),
        (["gpu"], True),
        (["gpu", "1g.5gb"], False),
    ],
    ids=str,
)
def test_what_goes_on_one_card(profiles, fits):
    """As NVIDIA's table of placements has it: two of 3g.20gb leave compute, and no slice of memory."""
    assert fits == ("n0" in having(*profiles).fits(claiming("c0")))


def test_placements_that_are_handed_out_do_not_overlap():
    """The memory slices of the devices of a claim are all different."""
    found = having("4g.20gb", "2g.10gb", "1g.5gb").reserved(claiming("c0"), "n0")

    assert ["gpu-0-mig-4g20gb-0", "gpu-0-mig-2g10gb-4", "gpu-0-mig-1g5gb-6"] == [name for _, _, name in found]


def test_a_second_card_takes_what_the_first_can_not():
    """A whole card and a partition need two; and two partitions may be kept on one."""
    together = [{"requests": ["r0", "r1"], "matchAttribute": "gpu.nvidia.com/parentUUID"}]

    assert ["n0"] == having("gpu", "1g.5gb", cards=2).fits(claiming("c0"))
    assert ["n0"] == having("4g.20gb", "4g.20gb", cards=2).fits(claiming("c0"))
    assert [] == having("4g.20gb", "4g.20gb", cards=2, constraints=together).fits(claiming("c0"))


def test_a_pool_without_its_counters_is_not_used():
    """Half of what the driver publishes is no pool yet: partitions of it would be handed out twice."""
    (_, devices) = node_slices()
    cluster = Cluster(slices=[devices], classes=classes(), claims=[wants("1g.5gb")])

    assert [] == cluster.fits(claiming("c0"))
