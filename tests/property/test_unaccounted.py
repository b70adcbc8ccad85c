"""Every bound pod that asks for a GPU is accounted or counted as unaccounted, whatever its history."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.facts.node_history import sharing_labels
from gputally.accounting.facts.release import lapsed_us
from gputally.model.pod_record import PodRecord
from gputally.model.unaccounted import Unaccounted
from gputally.shares.schemes import quantities_on
from tests.core.manifests import PodForm
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import CHIP, HORIZON, Draw
from tests.property.strategies import CLASS, Cluster, clusters
from tests.property.test_accounting import NO_PRICES, RULES, new_replay
from tests.told import Told
from tests.true_nodes import is_gpu

ASKS: tuple[dict[str, Any], ...] = (
    {"claims": ("gpu",)},
    {"more": {CHIP: 2}},
    {"more": {CLASS: 1}, "by_claim": (CLASS,)},
    {"more": {"nvidia.com/hostdev": 1}},
    {"more": {CHIP: 1, CLASS: 1}, "claims": ("a", "b")},
)


@st.composite
def strangers(draw: Draw) -> list[Told]:
    """Pods without any resource that a rule weighs: nothing but the counts knows them."""
    log: list[Told] = []
    for i in range(draw(st.integers(0, 4))):
        asks = draw(st.sampled_from(ASKS))
        bound, ended = draw(st.integers(1, 50)), draw(st.integers(51, 90))
        form = {"name": f"s{i}", "gpus": 0, "created": bound} | asks
        steps: list[tuple[int, str, dict[str, Any]]] = [
            (bound, "seen", {}),
            (bound, "seen", {"node": "n1", "scheduled": bound}),
            *draw(st.sampled_from([[], [(ended, "seen", {"node": "n1", "scheduled": bound, "phase": "Failed"})]])),
            *draw(st.sampled_from([[], [(ended, "gone", {"node": "n1", "scheduled": bound})]])),
        ]
        for version, (at, event, change) in enumerate(steps):
            manifest = PodForm(version=version + 1, **form | change).manifest()
            log.append(Told(kind="pod", event=event, manifest=manifest, at=at, since=at))  # type: ignore[arg-type]  # one of two
    return log


def newest(log: Sequence[Told]) -> dict[str, Told]:
    """The last of what was told of each pod."""
    return {told.manifest["metadata"]["uid"]: told for told in log if told.kind == "pod"}


def requests(told: Told) -> dict[str, int]:
    found = told.manifest["spec"]["containers"][0]["resources"]["requests"]
    return {name: int(amount) for name, amount in found.items() if int(amount)}


def is_bound(told: Told) -> bool:
    """Whether the pod is on a node, and has not ended."""
    is_over = told.event != "seen" or told.manifest["status"]["phase"] in ("Succeeded", "Failed")
    return not is_over and bool(told.manifest["spec"].get("nodeName"))


def reasons_by_form(told: Told) -> set[Unaccounted]:
    """What the object of a bound pod alone says."""
    found = set()
    if told.manifest["spec"].get("resourceClaims"):
        found.add(Unaccounted.CLAIM)
    if requests(told).get(CHIP):
        found.add(Unaccounted.UNKNOWN_DEVICE)
    if requests(told).get(CLASS):
        found.add(Unaccounted.DRA_EXTENDED_RESOURCE)
    return found


def weighed(record: PodRecord, replay: Replay) -> int:
    """µGPU of its whole request on its node as it is now."""
    history = replay.fleet.nodes.pod_node_of(record).history
    return sum(quantity for _, quantity in quantities_on(record.units, sharing_labels(history[-1][1]), RULES))


def held_now(record: PodRecord) -> int:
    return sum(segment.quantity for segment in record.segments if segment.end_us is None)


def check(replay: Replay, log: Sequence[Told]) -> None:
    fleet = replay.fleet
    fleet.advance(fleet.now_us + 1)  # deadlines that passed before the accounting started
    fleet.reconcile()
    entries, told_of = fleet.unaccounted.entries, newest(log)
    expected = Counter[Unaccounted]()
    for uid, told in told_of.items():
        found = {each.reason for each in entries.get(uid, ())}
        by_form = reasons_by_form(told) if is_bound(told) else set()
        record = fleet.pods.records.get(uid)
        missing = unaccounted_of(record, replay) if record else 0
        assert found - {Unaccounted.NOT_OFFERED, Unaccounted.DRA_EXTENDED_RESOURCE} == by_form - {
            Unaccounted.DRA_EXTENDED_RESOURCE
        }
        assert bool(found & {Unaccounted.NOT_OFFERED, Unaccounted.DRA_EXTENDED_RESOURCE}) == bool(
            missing or Unaccounted.DRA_EXTENDED_RESOURCE in by_form
        )
        if missing:
            is_by_claim = any(map(is_gpu, mapped(told)))
            assert (Unaccounted.DRA_EXTENDED_RESOURCE if is_by_claim else Unaccounted.NOT_OFFERED) in found
        assert sum(each.quantity or 0 for each in entries.get(uid, ())) == missing
        expected.update(found)
    assert entries.keys() <= told_of.keys()
    counted = fleet.unaccounted.read()
    assert counted.pods == {reason: expected[reason] for reason in Unaccounted}
    assert sum(counted.quantities.values()) == sum(each.quantity or 0 for all_of in entries.values() for each in all_of)


def mapped(told: Told) -> list[str]:
    status = told.manifest["status"].get("extendedResourceClaimStatus", {})
    return [each["resourceName"] for each in status.get("requestMappings", ())]


def unaccounted_of(record: PodRecord, replay: Replay) -> int:
    """µGPU that the pod requests and does not hold, while it holds what its node gives it."""
    if record.end_by is not None or not record.terms or lapsed_us(record, replay.fleet.now_us) is not None:
        return 0
    return weighed(record, replay) - held_now(record)


@given(clusters(outages=True), strangers(), st.data())
@examples(150)
def test_what_a_bound_pod_asks_for_is_accounted_or_counted(
    cluster: Cluster, others: list[Told], data: st.DataObject
) -> None:
    log = tuple(sorted([*cluster.log, *others], key=lambda told: (told.at, told.kind)))
    replay = new_replay(NO_PRICES)
    steps = st.sampled_from(["", "", "check", "flush", "crash"])
    for step, told in with_crashes(replay, log, lambda: data.draw(steps)):
        if step == "check":
            check(replay, log[: last(log, told) + 1])
    replay.scrape(HORIZON)
    check(replay, log)


def last(log: Sequence[Told], told: Told) -> int:
    """The place of this very entry in the log, or of its last repetition."""
    return max(i for i, each in enumerate(log) if each is told)
