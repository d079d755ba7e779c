"""All broken plugins, by the check that is to find them."""

from tests.unit.conformance import (
    faults_around,
    faults_of_binding,
    faults_of_calls,
    faults_of_framing,
    faults_of_groups,
    faults_of_identity,
    faults_of_listing,
    faults_of_state,
    faults_of_timing,
)

FAULTS = {
    **faults_of_identity.FAULTS,
    **faults_of_state.FAULTS,
    **faults_of_calls.FAULTS,
    **faults_of_listing.FAULTS,
    **faults_of_binding.FAULTS,
    **faults_of_framing.FAULTS,
    **faults_of_groups.FAULTS,
    **faults_of_timing.FAULTS,
    **faults_around.FAULTS,
}
