import numpy as np

from tests.hostile.work import calls, growth, kept_bytes


def test_calls_counts_python_and_c():
    assert 1 + 10 <= calls(lambda: [abs(i) for i in range(10)]) <= 1 + 10 + 2


def test_growth_tells_quadratic_from_linear():
    def quadratic(n):
        return lambda: [abs(i) for i in range(n) for _ in range(n)]

    def linear(n):
        return lambda: [abs(i) for i in range(n)]

    assert 0.9 < growth(linear, 100) < 1.1
    assert growth(quadratic, 100) > 3


def test_kept_bytes_counts_arrays_and_not_what_was_dropped():
    kept = []

    assert kept_bytes(lambda: kept.append(np.ones(100_000))) > 800_000
    assert kept_bytes(lambda: np.ones(100_000)) < 10_000


def test_a_table_that_is_made_anew_for_its_next_entry_is_not_kept():
    full = {number: number for number in range(2_730)}

    def come_and_go():
        for number in range(200):
            full[-1 - number] = number
        for number in range(200):
            del full[-1 - number]

    assert kept_bytes(come_and_go) < 1_000
