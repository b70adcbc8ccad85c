"""Over random clusters: a filter is called misspelt only if no record has its values, whoever asks."""

from fnmatch import fnmatchcase
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import SegmentRecord, Window
from gputally.reports.choices import Filter, literal
from gputally.reports.query import ReportQuery, unmatched
from tests.core.ledgers import ALWAYS
from tests.property.examples import examples
from tests.property.price_lists import price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_explanation import ledger_of
from tests.told import Prices

COLUMNS: Final = ("tier", "tenant", "namespace", "pod", "job", "node", "gpu_model", "pool")
GLOBS: Final = st.sampled_from(("*", "?", "[!a-m]*", "visoin", "*-*", "")) | st.none()
"""None for a name of a record."""


def value(record: SegmentRecord, column: str) -> str:
    names = {"namespace": record.namespace, "pod": record.name, "job": record.job, "node": record.node}
    return names[column] if column in names else str(getattr(record.segment, column))


@given(clusters(), price_lists(), st.sampled_from(COLUMNS), GLOBS, st.booleans(), st.data())
@examples(40)
def test_a_filter_is_misspelt_if_no_record_of_the_tenants_has_its_value(
    cluster: Cluster,
    prices: Prices,
    column: str,
    glob: str | None,
    restricted: bool,  # noqa: FBT001 - drawn
    data: st.DataObject,
) -> None:
    with ledger_of(cluster, prices, data) as reader:
        records = list(reader.segments(ALWAYS))
        chosen = data.draw(st.sampled_from(records)) if records else None
        wanted = glob if glob is not None else value(chosen, column) if chosen else "visoin"
        tenants = ["new[co]mer", *([chosen.segment.tenant] if chosen else [])]
        tenant = data.draw(st.sampled_from(tenants)) if restricted else ""
        limit = Filter("tenant", (literal(tenant),), is_limit=data.draw(st.booleans()))
        filters = (Filter(column, (wanted,)), *([limit] if tenant else []))
        found = unmatched(reader, ReportQuery(window=Window(0, 1), by=(), filters=filters))
        alone = unmatched(reader, ReportQuery(window=Window(0, 1), by=(), filters=filters[1:]))

    allowed = [each for each in records if not tenant or each.segment.tenant == tenant]
    is_known = any(fnmatchcase(value(each, column), wanted) for each in allowed)
    if limit.is_limit:
        assert alone == []
        assert not (tenant and column == "tenant" and fnmatchcase(tenant, wanted) and found)
    assert (f"{column} {wanted}" not in found) or not is_known
    if wanted == "visoin":
        assert f"{column} visoin" in found
