"""The rows that can be played against real processes, by name."""

from tests.hostile.cases import churn, connections, devices, many, pods, selectors, sidecars, texts

CASES = {
    case.row: case
    for module in (pods, selectors, devices, connections, sidecars, texts, many, churn)
    for case in module.CASES
}
