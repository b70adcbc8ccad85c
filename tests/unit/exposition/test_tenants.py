"""Which lines of an exposition a tenant sees."""

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.exposition.text_format import filter_by_tenant, render

GPUS: Metric[object] = Metric(
    name="gputally_gpus", kind=MetricType.GAUGE, help="GPUs.", labels=("tier", "tenant", "a"), rows=lambda _: ()
)
NODES: Metric[object] = Metric(name="gputally_nodes", kind=MetricType.GAUGE, help="Nodes.", rows=lambda _: ())
TEXTS = st.text(st.sampled_from('ab"\\\n\r\x0b,={}# tenant=é')) | st.sampled_from(["vision", "serving"])


@given(rows=st.sets(st.tuples(TEXTS, TEXTS, TEXTS)), shown=st.sets(TEXTS))
def test_just_the_series_of_these_tenants_are_left(rows: set[tuple[str, str, str]], shown: set[str]) -> None:
    page = render([(GPUS, [Row(row, 1) for row in rows]), (NODES, [Row((), 3)])], openmetrics=True)

    left = filter_by_tenant(page, shown).decode()

    families = {family.name: family for family in parsed(left)}
    found = {(s.labels["tier"], s.labels["tenant"], s.labels["a"]) for s in families["gputally_gpus"].samples}
    assert found == {row for row in rows if row[1] in shown}
    assert not families["gputally_nodes"].samples
    assert left.endswith("# EOF\n")


def test_a_team_in_a_metric_of_others_is_a_tenant() -> None:
    page = b'x_cost_usd{job_name="a",team="vision"} 1\nx_cost_usd{job_name="b",team="serving"} 2\n'

    assert filter_by_tenant(page, {"vision"}) == page.splitlines(keepends=True)[0]


def parsed(page: str) -> list[prometheus_client.Metric]:
    return list(text_string_to_metric_families(page))  # type: ignore[no-untyped-call] # the client's gap


@pytest.mark.parametrize(
    "line",
    ["gputally_nodes 3.0", 'gputally_x{tier="a"} 1.0', 'gputally_x{a_tenant="vision"} 1.0', 'x{tenant="visio"} 1'],
)
def test_what_is_nobodys_is_left_out(line: str) -> None:
    assert filter_by_tenant(f"{line}\n".encode(), {"vision"}) == b""
