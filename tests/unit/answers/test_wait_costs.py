"""What waits cost, what pods without a price may cost, and which changes would help at whose hands."""

from collections.abc import Mapping
from dataclasses import replace as replace_form
from decimal import Decimal

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.prices.book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.answers.pending_list import pending_list
from gputally.answers.viewer import ALL
from gputally.answers.wait_costs import waited_cost
from gputally.answers.why import why_document
from gputally.model.advice import PriorityChoice
from gputally.model.api.pending import CostRange
from gputally.model.api.why import WhyAnswer
from gputally.model.price import Basis
from gputally.questions.pending import Pending
from gputally.questions.why import Why
from gputally.web.pending_pages import pending_page
from tests.core.manifests import PodForm
from tests.unit.answers.pending_world import PRICE, Past, holds, node, waits, world


def priced(rates: Mapping[str, str]) -> PriceBook:
    """A price per GPU-hour by GPU model."""
    rules = tuple(
        PriceRule(
            id=model,
            criteria=(Criterion(trait=Trait.GPU_MODEL, globs=(model,)),),
            prices=(DatedPrice(from_us=0, per_gpu_hour=Decimal(rate)),),
        )
        for model, rate in rates.items()
    )
    return PriceBook(name="b", currency="EUR", basis=Basis.NODE, digest="0", rules=rules)


def without_price(now: PendingNow, rates: Mapping[str, str]) -> PendingNow:
    """The pods wait without a price, on nodes with these."""
    waiting = [replace(each, waits=[replace(part, price=None) for part in each.waits]) for each in now.waiting]
    return now._replace(waiting=waiting, book=priced(rates))


def answer(now: PendingNow) -> WhyAnswer:
    [found] = why_document(now, Why(namespace="ml", pod="a"), ALL, past=Past()).answers
    return found


def range_of(pod: PodForm, rates: Mapping[str, str]) -> tuple[str, CostRange | None]:
    found = answer(without_price(world(NODES, [pod]), rates)).pod
    assert found.cost_per_hour is None
    return found.unpriced, found.cost_range


NODES = [node("g1", 8, model="A100"), node("g2", 8, model="H100"), node("g3", 2, model="T4")]
RATES = {"A100": "2.21", "H100": "3.75", "T4": "0.4"}


def test_the_models_are_named_on_whose_nodes_the_price_depends() -> None:
    assert range_of(waits("a", 4), RATES)[1] == CostRange(lowest="8.84", highest="15", gpu_models=["A100", "H100"])
    only = waits("a", 4, node_selector={"nvidia.com/gpu.product": "A100"})
    assert range_of(only, RATES)[1] is None, "one price is no range"


def test_models_without_a_price_are_named_and_never_guessed() -> None:
    one = range_of(waits("a", 4), {"A100": "2.21"})
    none = range_of(waits("a", 4), {"T4": "0.4"})

    assert one[1] == CostRange(lowest="8.84", highest="8.84", gpu_models=["A100"], unpriced_models=["H100"])
    assert none == ("the nodes that it selects have no price", None)


def test_what_no_node_could_hold_has_no_price_at_all() -> None:
    assert range_of(waits("a", 16), {"A100": "2.21"}) == ("no node that it selects could hold it", None)


def test_of_labels_that_no_node_has_that_is_said() -> None:
    assert range_of(waits("a", 1, node_selector={"pool": "x"}), RATES) == (
        "no node has the labels that it selects",
        None,
    )


def test_lists_have_the_lowest_and_the_highest_price() -> None:
    now = world([node("g1", 4)], [waits("a", 4), waits("b", 1)])
    dearer = replace(PRICE, rate=2 * PRICE.rate)
    some = [replace(now.waiting[0], waits=[replace(part, highest=dearer) for part in now.waiting[0].waits])]
    now = now._replace(waiting=[*some, *now.waiting[1:]])

    found = pending_list(now, Pending(limit=10), ALL)
    assert [(each.cost_per_hour, each.highest_per_hour) for each in found.pods] == [("8.84", "17.68"), ("2.21", None)]
    assert {(each.cost_per_hour, each.highest_per_hour) for each in found.tenants} == {("11.05", "19.89")}


def test_the_cost_so_far_is_that_of_all_parts_to_the_second() -> None:
    now = world([node("g1", 4)], [waits("a", 4)])
    pod = now.waiting[0]

    assert answer(now).waited_cost == "8.692667", "4 GPUs, 59 min, 2.21 EUR"
    without = [replace(pod.waits[0], price=None), pod.waits[1]]
    assert waited_cost([without], now.at_us) == (None, None), "a part without a price is no part for nothing"
    assert waited_cost([[]], now.at_us) == (None, None)
    dearer = [pod.waits[0], replace(pod.waits[1], highest=replace(PRICE, rate=2 * PRICE.rate))]
    assert waited_cost([dearer], now.at_us) == ("8.692667", "13.112667"), "twice as much for 30 min"


def test_a_change_of_the_job_itself_is_marked_and_comes_last() -> None:
    classes = [PriorityChoice("top", 9000)]
    now = world([node("g1", 4)], [holds("b", 2, on="g1"), waits("a", 4)], classes=classes)

    helps = answer(now).helps
    assert [(each.text, each.by) for each in helps if each.changes_job] == [("request only 2 GPUs", ["owner"])]
    assert [each.changes_job for each in helps] == [False, False, False, True]


def test_a_list_names_the_first_change_of_each_kind() -> None:
    now = world([node("g1", 4)], [holds("b", 2, on="g1"), waits("a", 4)])

    [pod] = pending_list(now, Pending(limit=10, helps=True), ALL).pods
    assert (pod.helps, pod.job_changes) == (
        "wait until ml/b on g1 ends",
        "request only 2 GPUs (the owner of the pod)",
    )


def test_more_nodes_help_against_a_lack_of_capacity_and_not_against_nodes_that_are_too_small() -> None:
    full = answer(world([node("g1", 4)], [holds("b", 4, on="g1"), waits("a", 4)]))
    small = answer(world([node("g1", 4)], [holds("b", 4, on="g1"), waits("a", 8)]))

    assert full.more_nodes_help is True
    assert small.more_nodes_help is False
    assert (small.occupants, [each.kind for each in small.obstacles]) == ([], ["size"]), "nobody's leaving would help"


def test_of_a_model_that_no_node_has_that_is_said_instead_of_a_missing_price() -> None:
    mistyped = waits("a", 1, node_selector={"nvidia.com/gpu.product": "A10"})

    assert range_of(mistyped, {"A100": "2.21"}) == ("no node has the GPU model A10", None)


def test_no_class_is_suggested_with_which_a_pod_would_preempt_its_own_job() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    running = holds("b", 8, on="g1")
    alone = world([node("g1")], [running, waits("a", 8)], classes=[PriorityChoice("top", 9000)])
    theirs = world(
        [node("g1")],
        [replace_form(running, owners=(owner,)), waits("a", 8, owners=(owner,))],
        classes=[PriorityChoice("top", 9000)],
    )

    assert "ask for PriorityClass top" in [each.text for each in answer(alone).helps]
    assert "ask for PriorityClass top" not in [each.text for each in answer(theirs).helps]


@pytest.mark.parametrize("gpus", [8, 10**9])
def test_an_impossible_pod_has_no_price_and_is_in_no_sum_and_it_is_said_why(gpus: int) -> None:
    found = world(NODES, [waits("a", gpus), waits("b", 2)])
    none = [replace(part, price=None, quantity=0) for part in found.waiting[0].waits]
    uncharged = replace(found.waiting[0], waits=none)
    now = found._replace(waiting=[uncharged, *found.waiting[1:]], currency="EUR", book=priced({"A100": "2.21"}))
    asked = answer(now)
    document = pending_list(now, Pending(), ALL)

    assert asked.pod.gpus == gpus
    assert (asked.pod.cost_per_hour, asked.pod.cost_range) == (None, None)
    text = (
        "it asks for more GPUs than any node ever had, and than waits.ceiling_gpus_per_pod, so its wait is not charged"
    )
    assert asked.pod.unpriced == text
    assert sum(each.gpus for each in document.reasons) == sum(each.gpus for each in document.tenants) == 2
    assert [sum(each.uncharged_pods for each in sums) for sums in (document.reasons, document.tenants)] == [1, 1]
    assert sum(each.unpriced_gpus for each in document.reasons) == 2 * (now.waiting[1].waits[-1].price is None)
    assert "1 of these pods asks for more GPUs than any node ever had" in pending_page(document, Pending())
