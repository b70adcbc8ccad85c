from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gputally.catalog.metric import Metric, MetricType, Stability
from gputally.catalog.reference import document
from tests.conftest import Golden

ALLOCATED: Metric[Any] = Metric(
    name="gputally_allocated_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds allocated, from binding to release.",
    labels=("tier", "tenant"),
    rows=lambda _: (),
    stability=Stability.STABLE,
)
BUILD: Metric[Any] = Metric(name="gputally_build_info", kind=MetricType.INFO, help="This build a|b.", rows=lambda _: ())
GROUPS: Mapping[str, Sequence[Metric[Any]]] = {"Allocation": [ALLOCATED], "The process": [BUILD]}


def test_the_page_of_a_small_catalog_is_as_recorded(golden: Golden) -> None:
    golden.check("small_catalog.md", document(GROUPS))


def test_a_table_cell_cannot_break_its_table() -> None:
    assert "This build a\\|b." in document(GROUPS)


def test_only_units_in_use_are_explained() -> None:
    page = document(GROUPS)

    assert "| `_gpu_seconds` |" in page
    assert "| `_seconds` |" not in page
    assert "| `_bytes` |" not in page


def test_a_catalog_without_units_has_no_table_of_units() -> None:
    bare: Metric[Any] = Metric(name="gputally_pods", kind=MetricType.GAUGE, help="Pods.", rows=lambda _: ())

    assert "| Ending |" not in document({"Pods": [bare]})


def test_groups_keep_their_order() -> None:
    page = document(GROUPS)

    assert page.index("## Allocation") < page.index("## The process")


def test_what_is_only_for_reference_says_so() -> None:
    page = document({"Pods": [replace(ALLOCATED, reference_only=True)]})

    assert "| STABLE, for reference |" in page
    assert "- Metrics *for reference* are for manual queries" in page
    assert "for reference" not in document(GROUPS)
