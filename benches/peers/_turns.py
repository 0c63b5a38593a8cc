"""How long a run takes, for the scripts beside this one."""

import statistics
import time

WARM_UP = 3


def median_ms(rounds, run):
    """The median of so many runs in milliseconds, after a few that do not count."""
    times = []
    for turn in range(WARM_UP + rounds):
        started = time.perf_counter()
        run()
        if turn >= WARM_UP:
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3
