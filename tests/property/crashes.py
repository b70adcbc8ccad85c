"""Random histories over flushes and crashes."""

from collections.abc import Callable, Iterator

from tests.core.replay import Replay
from tests.property.node_lives import HORIZON
from tests.property.test_accounting import come_to, next_news, tell
from tests.told import Told


def with_crashes(
    replay: Replay,
    log: tuple[Told, ...],
    draw: Callable[[], str],
    restarted: Callable[[tuple[Told, ...]], None] = lambda _: None,
) -> Iterator[tuple[str, Told]]:
    """Tell the whole `log`, with a step drawn after each entry: flush, crash (three at most), or one of the caller's.

    Yields the caller's steps, each with the entry before it. After a crash, `restarted` lists what watches do not
    resume, as of the entries that were kept.
    """
    i, kept, crashes = 0, 0, 3
    while i < len(log):
        tell(replay, log[i])
        i += 1
        step = draw()
        if step == "flush":
            replay.flush()
            kept = i
        elif step != "crash":
            yield step, log[i - 1]
        elif crashes:
            replay.restart()
            i, crashes = next_news(log, kept), crashes - 1  # what was not kept is told again
            restarted(log[:i])
    come_to(replay, HORIZON)
