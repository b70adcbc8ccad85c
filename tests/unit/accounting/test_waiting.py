"""Why pods wait, what that is charged to, and what follows from it."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from gputally.accounting.fleet.active_pods import pending
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.prices.book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.accounting.totals.total import Total
from gputally.accounting.wait_book.book import MOST_WAITS
from gputally.accounting.waiting.blame import Blame, BlameShares
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import Pod
from gputally.model.needs import Needs, Situation
from gputally.model.observation import RelistFinished, RelistStarted
from gputally.model.price import Basis
from gputally.model.rules import Rules
from gputally.model.verdicts import Reason, Verdict
from gputally.model.waits import Occupant, WaitCause
from gputally.placement import verdicts as placement
from gputally.placement.room import Room
from tests.core.manifests import NodeForm, PodForm, as_pod, us
from tests.core.replay import Replay

H100 = {"nvidia.com/gpu.product": "H100"}
NODE = NodeForm(name="n1", gpus=8, labels=H100)
HOLDER = PodForm(name="a", gpus=8, node="n1", scheduled=5, started=6, tier="gold", priority=10)
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
WAITS = PodForm(name="b", gpus=2, created=20, tier="lead", priority=1)


def new_replay(*pods: PodForm, book: PriceBook | None = None) -> Replay:
    replay = Replay(opened=0, book=book)
    for name in ("gold", "lead"):
        replay.see_class({"metadata": {"name": name, "uid": f"uid-{name}"}, "value": 1}, at=0)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.relist(Kind.PODS, HOLDER, *pods, at=10, since=None)
    return replay


def reasons(replay: Replay, name: str = "b") -> list[tuple[Reason, float, float | None]]:
    """With begin and end in seconds."""
    waits = replay.fleet.waiting.book.known[f"uid-{name}"].waits
    return [(each.reason, _s(each.from_us) or 0, _s(each.to_us)) for each in waits]


def _s(instant_us: int | None) -> float | None:
    return None if instant_us is None else (instant_us - us(0)) / 1e6


def without_report(form: PodForm, *, scheduler: str) -> Pod:
    """A pod on which its scheduler has not reported."""
    manifest: dict[str, Any] = form.manifest()
    manifest["spec"]["schedulerName"] = scheduler
    manifest["status"]["conditions"] = []
    return as_pod(manifest)


def book(**rates: int) -> PriceBook:
    """A price by GPU model, and one for all other nodes."""
    models = {name: (Criterion(trait=Trait.GPU_MODEL, globs=(name,)),) for name in rates if name != "default"}
    rules = (
        PriceRule(
            id=name, criteria=models.get(name, ()), prices=(DatedPrice(from_us=0, per_gpu_hour=Decimal(rates[name])),)
        )
        for name in (*models, *(rates.keys() - models.keys()))
    )
    return PriceBook(currency="EUR", basis=Basis.GPU, rules=tuple(rules))


def prices(replay: Replay, name: str) -> tuple[Decimal | None, Decimal | None]:
    """The lowest and the highest price of what a pod waits for."""
    last = replay.fleet.waiting.book.known[f"uid-{name}"].waits[-1]
    lowest, highest = (each.per_gpu_hour if each else None for each in last.prices)
    return lowest, highest


def occupants(replay: Replay, name: str) -> list[Occupant | None]:
    return [each.occupant for each in replay.fleet.waiting.book.known[f"uid-{name}"].waits]


def charged(replay: Replay, at: float) -> dict[tuple[str, ...], Fraction]:
    replay.scrape(at)
    return replay.gpu_seconds(at, Total.PENDING)


def test_a_pod_waits_for_the_pods_that_hold_what_it_needs_since_its_creation() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)

    assert charged(replay, 40)["lead", "gold", "capacity"] == 2 * 20
    [waiting] = replay.fleet.waiting.pods()
    assert (waiting.verdict.reason, waiting.tier, waiting.quantity) == (Reason.CAPACITY, "lead", 2_000_000)
    assert waiting.waits[-1].occupant == Occupant("gold", "ml")
    assert waiting.since_us == us(20)


def test_pods_of_the_same_priority_are_another_cause_than_capacity() -> None:
    replay = new_replay()
    replay.see(replace(WAITS, priority=10), at=21)

    assert charged(replay, 40)["lead", "gold", "not_preemptible"] == 2 * 20


def test_a_change_of_the_room_ends_a_reason() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(25)
    replay.see(replace(HOLDER, phase="Succeeded", finished=30, version=3), at=30)
    replay.scrape(31)

    assert reasons(replay) == [(Reason.CAPACITY, 20, 31), (Reason.SCHEDULABLE, 31, None)]


def test_a_binding_that_is_observed_late_takes_back_what_was_charged_after_it() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(60)
    replay.see(replace(WAITS, node="n1", scheduled=50, version=4), at=70)

    assert charged(replay, 80)["lead", "gold", "capacity"] == 2 * 30
    assert replay.fleet.waiting.pods() == []
    replay.flush()
    assert [(row.wait.from_us, row.wait.to_us) for row in replay.memory.waits.values() if row.uid == "uid-b"] == [
        (us(20), us(50))
    ]


def test_a_pod_that_nobody_saw_waiting_waited_for_its_scheduler() -> None:
    replay = new_replay()
    replay.see(replace(HOLDER, phase="Succeeded", finished=15, version=3), at=15)
    replay.see(replace(WAITS, node="n1", scheduled=23), at=24)

    assert charged(replay, 40)["lead", "nobody", "other"] == 2 * 3


def test_a_deleted_pod_waits_no_longer() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(25)
    replay.lose(replace(WAITS, version=4), at=30)

    assert charged(replay, 90)["lead", "gold", "capacity"] == 2 * 10
    assert replay.fleet.waiting.book.known == {}


def test_of_many_pods_behind_one_only_as_many_gpus_are_charged_to_it_as_it_holds() -> None:
    replay = new_replay()
    replay.see(*(replace(WAITS, name=f"b{number:03}", gpus=3) for number in range(200)), at=21)
    charged(replay, 30)

    waits = {uid: each.waits[-1] for uid, each in replay.fleet.waiting.book.known.items()}
    by_occupant = {uid: wait.by_occupant for uid, wait in waits.items() if wait.by_occupant}
    assert by_occupant == {"uid-b000": 3_000_000, "uid-b001": 3_000_000, "uid-b002": 2_000_000}
    assert {wait.cause for wait in waits.values()} == {WaitCause.CAPACITY}
    found = charged(replay, 40)
    assert found["lead", "gold", "capacity"] == 8 * 20
    assert found["lead", "nobody", "capacity"] == 592 * 20


def test_an_impossible_request_takes_no_share_from_the_pods_behind_the_same_holder() -> None:
    shares = BlameShares({"h": 4}.__getitem__)
    to = Blame(WaitCause.CAPACITY, Occupant("gold", "red"), "n1", ("h",))
    shares.restore("impossible", to, created_us=0, quantity=0, charged=0)
    shares.put("b", to, created_us=1, quantity=3)

    assert shares.recompute() == {"impossible", "b"}
    assert shares.occupant_share("impossible") == (None, 0, ())
    assert shares.occupant_share("b") == (Occupant("gold", "red"), 3, ("h",))


def test_the_pod_that_has_waited_for_longest_is_charged_first_and_its_place_passes_to_the_next() -> None:
    replay = new_replay()
    replay.see(
        *(replace(WAITS, name=name, gpus=8, created=at) for name, at in (("b", 20), ("c", 18), ("d", 19))), at=21
    )
    replay.scrape(25)
    assert [name for name in "bcd" if occupants(replay, name)[-1]] == ["c"]

    replay.lose(replace(WAITS, name="c", gpus=8, created=18, version=4), at=30)
    replay.scrape(31)
    assert [name for name in "bd" if occupants(replay, name)[-1]] == ["d"]


def test_later_pods_of_others_change_nothing_about_who_is_charged_for_earlier_ones() -> None:
    alone, beside = (new_replay() for _ in range(2))
    for replay in (alone, beside):
        replay.see(WAITS, replace(WAITS, name="c", gpus=7), at=21)
        replay.scrape(25)
    beside.see(*(replace(WAITS, name=f"x{number}", namespace="rival", gpus=8) for number in range(50)), at=26)
    for replay in (alone, beside):
        replay.scrape(60)

    for name in ("b", "c"):
        waits = [replay.fleet.waiting.book.known[f"uid-{name}"].waits for replay in (alone, beside)]
        assert waits[0] == waits[1]


def test_what_an_ended_pod_held_is_charged_to_nobody_even_while_no_reason_is_known() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(30)
    replay.restart()
    replay.see(replace(HOLDER, phase="Succeeded", finished=33, version=3), at=33)
    replay.scrape(34)

    assert reasons(replay)[-1] == (Reason.CAPACITY, 34, None)
    assert occupants(replay, "b") == [Occupant("gold", "ml"), None]


def test_a_new_process_charges_the_holders_that_are_left_if_the_first_one_is_gone() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    holders = [replace(HOLDER, name=name, gpus=4) for name in "ac"]
    replay.relist(Kind.PODS, *holders, at=10, since=None)
    replay.see(replace(WAITS, gpus=8), at=21)
    replay.scrape(30)
    assert replay.fleet.waiting.book.known["uid-b"].holders == ("uid-a", "uid-c")

    replay.lose(holders[0], at=31)
    replay.flush()
    replay.restart()
    assert "uid-a" not in replay.fleet.pods.records
    replay.scrape(34)
    last = replay.fleet.waiting.book.known["uid-b"].waits[-1]
    assert (last.occupant, last.by_occupant) == (Occupant("gold", "ml"), 4_000_000)


def test_a_wait_costs_what_the_same_pod_would_cost_on_the_nodes_that_it_selects() -> None:
    replay = new_replay(book=book(h100=36, default=18))
    replay.see(NodeForm(name="n2", gpus=8, labels={"nvidia.com/gpu.product": "A100"}, taints=(TAINT,)), at=15)
    replay.see(replace(WAITS, node_selector=H100), at=21)
    replay.see(replace(WAITS, name="c"), replace(WAITS, name="d", node_selector={"pool": "x"}), at=21)
    replay.scrape(30)

    assert [prices(replay, name) for name in "bcd"] == [(36, None), (36, None), (None, None)], "no default for no node"
    replay.see(NodeForm(name="n2", gpus=8, labels={"nvidia.com/gpu.product": "A100"}, version=7), at=31)
    replay.see(NodeForm(name="n3", gpus=1, labels={"pool": "x"}), at=31)
    for at in range(32, 120, 5):
        replay.scrape(at)
    assert [prices(replay, name) for name in "bcd"] == [(36, None), (18, 36), (None, None)], "n3 is too small"


def test_prices_that_were_not_known_yet_count_since_a_wait_began() -> None:
    replay = Replay(opened=0, book=book(h100=36))
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.apply(RelistStarted(kind=Kind.PODS, at_us=us(2)))
    replay.see(WAITS, at=21)
    replay.scrape(22)
    replay.see(HOLDER, at=23)
    replay.apply(RelistFinished(kind=Kind.PODS, version="9", at_us=us(24), since_us=None, as_of_us=us(2)))
    replay.scrape(25)

    assert replay.true(Total.PENDING_UNPRICED, 30) == {}
    assert sum(replay.money(30, Total.PENDING_COST).values()) == Fraction(2 * 10 * 36 + 8 * 5 * 36, 3600)


def test_a_pod_that_nobody_saw_waiting_costs_what_it_costs_on_its_node() -> None:
    replay = new_replay(book=book(h100=36))
    replay.see(replace(HOLDER, phase="Succeeded", finished=15, version=3), at=15)
    replay.see(replace(WAITS, node="n1", scheduled=23), at=24)

    assert charged(replay, 40)["lead", "nobody", "other"] == 2 * 3
    assert replay.money(40, Total.PENDING_COST)["lead", "nobody", "other", "EUR"] == Fraction(2 * 3 * 36, 3600)


def test_a_pool_that_has_scaled_to_zero_has_the_price_of_its_labels() -> None:
    replay = new_replay(book=book(h100=36, default=18))
    replay.see(replace(WAITS, node_selector={"accelerator": "h100"}), at=21)
    replay.see(replace(WAITS, name="c", node_selector={"accelerator": "b200"}), at=21)
    replay.scrape(30)

    assert [prices(replay, name) for name in "bc"] == [(36, None), (None, None)]


@pytest.mark.parametrize("key", ["accelerator", "gpu-type"])
def test_pods_are_counted_under_the_model_of_the_nodes_that_have_their_label(key: str) -> None:
    replay = new_replay()
    replay.see(replace(NODE, labels=H100 | {key: "nvidia-h100"}, version=5), at=11)
    replay.see(replace(WAITS, node_selector={key: "nvidia-h100"}), at=21)

    assert replay.scrape(30).wanted == {"H100": 2_000_000}
    assert [each.gpu_model for each in pending(replay.fleet)] == ["H100"]


def test_the_last_known_reason_counts_until_a_new_process_knows_better() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(30)

    replay.restart()
    replay.scrape(40)

    assert reasons(replay) == [(Reason.CAPACITY, 20, None)]
    assert charged(replay, 50)["lead", "gold", "capacity"] == 2 * 30


def test_a_pod_that_a_new_process_does_not_know_yet_is_charged_to_other() -> None:
    replay = new_replay()
    replay.flush()
    replay.restart()

    replay.see(WAITS, at=21)
    replay.scrape(30)

    assert reasons(replay) == [(Reason.UNKNOWN, 20, None)]


def test_identical_pods_are_judged_once() -> None:
    replay = new_replay()
    replay.see(*(replace(WAITS, name=f"b{number}", namespace=f"team-{number % 3}") for number in range(50)), at=21)
    replay.scrape(30)

    assert len(replay.fleet.waiting.verdicts.classes) == 1
    assert replay.scrape(31).waits
    waits = replay.scrape(32).waits
    assert waits
    assert waits.reasons["lead", "capacity"] == (50, 100_000_000)


def test_a_verdict_is_renewed_only_for_classes_that_a_changed_node_accepts() -> None:
    other = NodeForm(name="n2", gpus=8, labels={"nvidia.com/gpu.product": "A100"})
    replay = new_replay()
    replay.see(other, at=11)
    replay.see(replace(WAITS, node_selector=H100), at=21)
    replay.scrape(30)
    judged: list[str] = []
    verdicts = replay.fleet.waiting.verdicts

    def judge(needs: Needs, room: Room, situation: Situation) -> Verdict:
        judged.append(needs.namespace)
        return placement.judged(needs, room, situation)

    verdicts._judge = judge

    replay.see(PodForm(name="x", gpus=1, node="n2", scheduled=31), at=31)
    replay.scrape(32)
    assert judged == []

    replay.see(replace(HOLDER, phase="Succeeded", finished=33, version=3), at=33)
    replay.scrape(34)
    assert judged == [""]


def test_only_the_latest_waits_of_a_pod_are_kept_and_all_reach_the_ledger() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    for turn in range(2 * MOST_WAITS):
        cordoned = replace(NODE, cordoned=turn % 2 == 0, version=100 + turn)
        replay.see(cordoned, at=30 + turn)
        replay.scrape(30.5 + turn)

    assert len(replay.fleet.waiting.book.known["uid-b"].waits) == MOST_WAITS
    assert len([key for key in replay.memory.waits if key[0] == "uid-b"]) == 2 * MOST_WAITS
    assert sum(charged(replay, 200).values()) == 2 * 180 + 8 * 5


def test_a_gang_is_complete_once_as_many_members_exist_as_it_states() -> None:
    labels = {
        "pod-group.scheduling.sigs.k8s.io": "train",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    }
    replay = new_replay()
    replay.see(replace(HOLDER, phase="Succeeded", finished=15, version=3), at=15)
    member = replace(WAITS, labels=labels)
    replay.see(replace(member, name="b"), replace(member, name="c"), at=21)
    replay.scrape(30)
    assert reasons(replay)[-1][0] is Reason.GANG
    assert charged(replay, 40)["lead", "nobody", "gang"] > 0

    replay.see(replace(member, name="d"), at=41)
    replay.scrape(42)

    assert reasons(replay)[-1][0] is Reason.SCHEDULABLE


def test_a_pod_of_a_scheduler_that_is_never_heard_of_waits_for_it() -> None:
    replay = new_replay()
    replay.see(replace(HOLDER, phase="Succeeded", finished=15, version=3), at=15)
    silent = without_report(WAITS, scheduler="no-such")
    replay.see_pod(silent, at=21)
    replay.scrape(25)
    assert reasons(replay)[-1][0] is Reason.SCHEDULABLE

    replay.scrape(36)
    replay.scrape(42)

    assert reasons(replay)[-1][0] is Reason.NO_SCHEDULER


def test_kueue_has_not_admitted_a_pod_with_its_gate() -> None:
    replay = new_replay()
    manifest = WAITS.manifest()
    manifest["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    replay.see_pod(as_pod(manifest), at=21)
    replay.scrape(25)

    assert reasons(replay)[-1][0] is Reason.QUEUED
    assert charged(replay, 40)["lead", "nobody", "quota"] == 2 * 20


def test_without_the_feature_nothing_is_charged() -> None:
    replay = Replay(opened=0)
    replay.fleet = Fleet(rules=Rules(), book=None, saved=replay.memory.saved(), explains_waits=False)
    replay.see(NODE, HOLDER, at=10)
    replay.see(WAITS, at=21)

    assert charged(replay, 40) == {}
    assert replay.scrape(50).waits is None
    assert replay.fleet.waiting.room.nodes == {}


def test_waits_end_when_the_feature_is_turned_off() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(30)

    replay.fleet = Fleet(rules=Rules(), book=None, saved=replay.memory.saved(), explains_waits=False)

    assert sum(charged(replay, 90).values()) == 2 * 10 + 8 * 5


def test_pods_that_were_seen_before_all_nodes_and_pods_were_listed_have_a_verdict_afterwards() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.apply(RelistStarted(kind=Kind.PODS, at_us=us(2)))
    replay.see(WAITS, at=21)
    replay.scrape(22)
    assert reasons(replay) == [(Reason.UNKNOWN, 20, None)]

    replay.see(HOLDER, at=23)
    replay.apply(RelistFinished(kind=Kind.PODS, version="9", at_us=us(24), since_us=None, as_of_us=us(2)))
    replay.scrape(25)

    assert reasons(replay)[-1] == (Reason.CAPACITY, 25, None)
