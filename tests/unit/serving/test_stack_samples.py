"""Samples of a thread's stack: what it spends its time on, without its doing anything for it."""

import sys
import threading

from berth.serving.stack_samples import StackSamples


def outer():
    return inner()


def inner():
    return sys._getframe()


def again(times):
    return again(times - 1) if times else sys._getframe()


def lines(samples):
    return {line.rpartition(" ")[2]: line.split()[:2] for line in samples.text().splitlines()[2:]}


def test_shares_of_functions():
    """A function has what is its own, and what it called."""
    samples = StackSamples()
    samples.look(outer())
    samples.look(inner())

    shown = lines(samples)
    assert ["100.0%", "100.0%"] == shown["inner"]
    assert ["50.0%", "0.0%"] == shown["outer"]


def test_a_function_that_calls_itself_counts_once():
    """No share is above all samples."""
    samples = StackSamples()
    samples.look(again(5))

    assert ["100.0%", "100.0%"] == lines(samples)["again"]


def test_a_thread_that_is_gone():
    """Nothing is counted for it."""
    samples = StackSamples()
    samples.look(None)

    assert 0 == samples.looks


def test_a_thread_is_seen_from_another():
    """Its stack is found by its identity, while it stands still."""
    ready, leave, samples = threading.Event(), threading.Event(), StackSamples()

    def stands_still():
        ready.set()
        leave.wait()

    seen = threading.Thread(target=stands_still)
    seen.start()
    ready.wait()
    samples.take(seen.ident, 0.01, threading.Event())
    leave.set()
    seen.join()

    assert any("stands_still" in line for line in samples.text().splitlines())


def test_stopping_a_profile():
    """A profile that is given up takes no further sample."""
    stop, samples = threading.Event(), StackSamples()
    stop.set()
    samples.take(threading.get_ident(), 300.0, stop)

    assert 0 == samples.looks
