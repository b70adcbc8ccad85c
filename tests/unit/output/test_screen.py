"""What `gputally top` shows."""

import io
from decimal import Decimal

from msgspec import structs
from rich.console import Console

from gputally.model.api.allocations import JobPlacement, NodeCapacity, UnaccountedCount
from gputally.output.allocation_groups import groups
from gputally.output.top import screen
from tests.unit.output.allocations_documents import NODES, PODS, document, pod


def shown(*, by: str = "tier", width: int = 80, height: int | None = None, **changes: object) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False)
    found = document(**changes)  # type: ignore[arg-type]  # the fields of a document
    console.print(screen(found, by=by, width=width, height=height, keys=height is not None))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_screen_fits_eighty_columns() -> None:
    assert shown() == [
        "GPUs     16: 9.25 allocated, 4 cordoned, 2.75 free",
        "Pending  1 pod waits for 8 GPUs: gputally why --all says why",
        "Cost     23.00 USD per hour for the allocated GPUs, and 1 GPUs without a price",
        "TIER                                                PODS  GPUS ↓  PENDING  USD/H",
        "low                                                    2       8        0  20.50",
        "high                                                   2    1.25        0   2.50",
        "top                                                    1       0        8   0.00",
    ]


def test_pods_that_are_not_accounted_have_a_line_of_their_own() -> None:
    missing = [
        UnaccountedCount(reason="not_offered", text="", pods=1, gpus=2),
        UnaccountedCount(reason="claim", text="", pods=1234, gpus=None),
    ]
    lines = shown(height=24, unaccounted=missing)

    assert lines[3] == "Unaccounted  1 pod, 2 GPUs (not_offered); 1,234 pods (claim)"
    assert len(lines) == 24


def test_a_wide_terminal_shows_the_states() -> None:
    assert shown(width=120)[3].split() == [
        *("TIER", "PODS", "GPUS", "↓", "RUNNING", "GANG", "WAIT", "STARTING", "TERMINATING", "PENDING", "USD/H"),
    ]


def test_rows_that_do_not_fit_the_height_are_counted() -> None:
    many = [pod(f"job{number:02}-0", 1) for number in range(40)]
    lines = shown(by="job", height=24, pods=many)

    assert len(lines) == 24
    assert lines[-1] == "21 more rows  t tier  e tenant  j job  n node  m model  p pod  q quit"


def test_nodes_are_shown_with_the_gpus_that_they_offer_also_without_pods() -> None:
    empty = NodeCapacity(node="n3", gpu_model="H100", pool="a", gpus={"free": 8})

    assert [line.split() for line in shown(by="node", nodes=[*NODES, empty])[4:]] == [
        ["n1", "3", "5.25", "of", "8", "0", "12.50"],
        ["n2", "1", "4", "of", "8", "0", "10.50"],
        ["n3", "0", "0", "of", "8", "0", "0.00"],
    ]


def test_the_keys_are_in_the_last_line_of_the_terminal() -> None:
    lines = shown(height=24)

    assert len(lines) == 24
    assert lines[-1] == "t tier  e tenant  j job  n node  m model  p pod  q quit"


def test_pods_are_summed_by_job_and_by_node() -> None:
    by_job = {group.name: (group.pods, group.held, group.cost) for group in groups(PODS, by="job")}
    by_node = {group.name: group.held for group in groups(PODS, by="node")}

    assert by_job["ml/train"] == (2, 8.0, Decimal("20.5"))
    assert by_node == {"n1": 5.25, "n2": 4.0}, "a pending pod is on no node"


def test_a_job_shows_its_nodes_and_how_few_would_do() -> None:
    train = JobPlacement(namespace="ml", job_kind="Job", job="train", nodes=2, nodes_needed=1)
    lines = shown(by="job", width=120, jobs=[train])
    twice = shown(by="job", width=120, jobs=[train, structs.replace(train, job_kind="JobSet")])

    assert lines[3].split()[:3] == ["JOB", "PODS", "NODES"]
    assert lines[4].split()[:6] == ["ml/train", "2", "2", "for", "1", "8"]
    assert twice[4].split()[:4] == ["ml/train", "2", "2", "8"]
    assert "NODES" not in shown(by="job", jobs=[train])[3]
    assert "NODES" not in shown(width=120, jobs=[train])[3]


def test_no_name_controls_the_terminal() -> None:
    lines = shown(by="job", pods=[pod("\x1b[2J\x9b2J", 1)])

    assert not any(code in line for line in lines for code in "\x1b\x9b")
    assert any("\\x1b[2J\\x9b2J" in line for line in lines)


def test_the_group_with_the_most_gpus_comes_first() -> None:
    assert [group.name for group in groups(PODS, by="tier")] == ["low", "high", "top"]


def test_a_group_without_any_price_says_so() -> None:
    lines = shown(pods=[pod("a", 1, cost=None)])

    assert lines[-1].endswith("no price")


def test_without_a_price_book_no_cost_is_shown() -> None:
    lines = shown(currency="")

    assert lines[2] == "Cost     no price book"
    assert "USD" not in lines[3]


def test_a_user_of_some_tenants_sees_what_they_hold() -> None:
    assert shown(nodes=None)[0] == "GPUs     9.25 held by your tenants"


def test_an_empty_cluster_is_no_error() -> None:
    assert shown(pods=[], nodes=[])[:2] == ["GPUs     none", "Pending  no pods"]
