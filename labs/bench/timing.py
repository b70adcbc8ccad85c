"""Measures the duration of calls in this process."""

import gc
import time
from collections.abc import Callable

ROUNDS = 10


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call; existing objects are frozen, so the garbage collector does not scan them."""
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def best_ms(call: Callable[[], object], *, rounds: int = ROUNDS) -> float:
    """Milliseconds of the fastest call, to exclude interference."""
    return 1000 * min(timed(call) for _ in range(rounds))
