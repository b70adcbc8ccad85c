"""How long a call takes in this process."""

import gc
import time
from collections.abc import Callable

ROUNDS = 10


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call; what is in memory before it is not looked at again by the garbage collector."""
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def best_ms(call: Callable[[], object], *, rounds: int = ROUNDS) -> float:
    """Milliseconds of the fastest call: what the work costs when nothing disturbs it."""
    return 1000 * min(timed(call) for _ in range(rounds))
