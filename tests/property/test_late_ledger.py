"""A ledger that cannot be written for long has the same in the end as one that is written after each change."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import cycle
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.disruptions import disruptions, node_signals, preemptions
from gputally.accounting.jobs.progress import PROGRESS
from gputally.accounting.lost_work import groups, lost_work
from gputally.accounting.nodes import nodes
from gputally.accounting.pods import deleted
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import PodForm, preempted_event, us
from tests.core.replay import Replay
from tests.property import test_jobs
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, Draw
from tests.property.price_lists import price_lists
from tests.property.test_accounting import come_to, new_replay, tell
from tests.property.test_lost_groups import gangs
from tests.property.test_lost_work import with_losses
from tests.told import Prices, Told

SHORT = {
    disruptions: ("_KEEP_US",),
    node_signals: ("_KEEP_US",),
    preemptions: ("_KEEP_US", "_PATIENCE_US"),
    groups: ("PATIENCE_US",),
    lost_work: ("_KEEP_US", "_UNCHARGED_US", "_FORGET_EVERY_US"),
    nodes: ("_KEEP_US",),
    deleted: ("_UNDESCRIBED_US", "KEEP_US"),
}
"""How long each part keeps what is over."""
STEPS = st.sampled_from(["", "", "drain", "drain", "flush", "fails"])


@pytest.fixture(autouse=True, params=[2, 15], ids="{}s".format)
def forgetful(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is kept for an hour is kept for some seconds, so that a history of 100 s lasts for hours."""
    with ExitStack() as patches:
        for module, names in SHORT.items():
            for name in names:
                patches.enter_context(patch.object(module, name, request.param * US_PER_SECOND))
        yield


@st.composite
def histories(draw: Draw) -> tuple[Told, ...]:
    """Pods of Jobs and of groups, that are preempted, lost or deleted, and that state checkpoints and progress.

    Some have devices only by claims.
    """
    log = draw(with_losses(draw(test_jobs.workloads()).log, grouped=draw(st.booleans())))
    claiming = draw(st.frozensets(st.sampled_from(["p0", "p1"])))
    return tuple(progressing(told, claiming) for told in log)


def progressing(told: Told, claiming: frozenset[str]) -> Told:
    """Each version of a pod has done more than those before."""
    if told.kind != "pod":
        return told
    meta, spec = told.manifest["metadata"], told.manifest["spec"]
    if meta["name"] in claiming:
        spec = {**spec, "containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu"}]}
    annotations = {**meta.get("annotations", {}), PROGRESS: str(told.since)}
    return replace(told, manifest={**told.manifest, "metadata": {**meta, "annotations": annotations}, "spec": spec})


def written(log: Sequence[Told], prices: Prices, steps: Sequence[str]) -> Replay:
    """What a ledger has that is written, or not, as in these `steps` again and again.

    Between them, Events name preemptors, a PriorityClass changes, and waits are judged.
    """
    replay = new_replay(prices)
    replay.fleet.disrupted.disruptions.announces = True
    for number, (told, step) in enumerate(zip(log, cycle(steps), strict=False)):
        tell(replay, told)
        more(replay, number, at=told.at)
        write(replay, step)
    for second, step in zip(range(HORIZON, HORIZON + 60, 5), cycle(steps), strict=False):
        come_to(replay, second)
        write(replay, step)
    replay.flush()
    return replay


def more(replay: Replay, number: int, *, at: int) -> None:
    match number % 4:
        case 0:
            victim, by = (PodForm(name=f"p{(number // 4 + each) % 3}") for each in (0, 1))
            replay.see_event(preempted_event(victim, by=by), at=at)
        case 1:
            replay.see_class({"metadata": {"name": "gold", "uid": "gold"}, "value": number}, at=at)
        case 2:
            replay.fleet.waiting.judge(at_us=replay.fleet.now_us)


def write(replay: Replay, step: str) -> None:
    if step == "drain":
        replay.drain()
    elif step:
        replay.flush(fails=step == "fails")


def assert_alike(late: Replay, prompt: Replay) -> None:
    """Both ledgers have the same, and so do the counters."""
    for name, rows in prompt.memory.history.items():
        assert late.memory.history[name] == rows, name
    for name in ("revisions", "waits", "pods", "nodes", "departed", "documents"):
        assert getattr(late.memory, name) == getattr(prompt.memory, name), name
    assert counters(late) == counters(prompt)


def counters(replay: Replay) -> dict[object, int]:
    """The counters at the end, as the ledger has them."""
    found = {key: series.at(us(HORIZON + 60)) for key, series in replay.memory.series.items()}
    return {key: value for key, value in found.items() if value}


@given(histories(), price_lists(), st.lists(STEPS, min_size=1, max_size=40))
@examples(150)
def test_a_ledger_that_is_written_late_has_what_one_has_that_is_written_at_once(
    log: tuple[Told, ...], prices: Prices, steps: list[str]
) -> None:
    assert_alike(written(log, prices, steps), written(log, prices, ["flush"]))
    assert_alike(written(log, prices, ["drain"]), written(log, prices, ["flush"]))


@given(gangs().map(lambda gang: gang.log()), price_lists(), st.lists(STEPS, min_size=1, max_size=40))
@examples(100)
def test_so_it_is_for_gangs_that_restart_or_wait(log: tuple[Told, ...], prices: Prices, steps: list[str]) -> None:
    assert_alike(written(log, prices, steps), written(log, prices, ["flush"]))
    assert_alike(written(log, prices, ["drain"]), written(log, prices, ["flush"]))
