"""The schema that docs/ledger.md promises is that of a new ledger, and its query is exact where plain SQL is not."""

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU, GPU_HOUR
from tests.contract.records import PRICE, pod, segment, step
from tests.docs.pages import TEXTS, blocks, table

PAGE = TEXTS["docs/ledger.md"]
RELATIONS = [(relation, columns.split(", ")) for relation, _, columns in table(PAGE, "Relation")]
(QUERY,) = blocks(PAGE, "sql")
YEAR = 365 * 86_400
NOT_PROMISED = {
    "allocation_segments": {"revision", "ordinal", "label_tier", "label_tenant", "label_gpu_model"},
    "usage_by_pod": {"start_us", "memory"},
    "capacity": {"recorded_us", "divided"},
    "closed_lines": {"ordinal"},
}


@pytest.mark.parametrize(("relation", "columns"), RELATIONS)
def test_every_column_is_promised_or_known_as_not_promised(tmp_path: Path, relation: str, columns: list[str]) -> None:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=1))

    with closing(sqlite3.connect(path)) as connection:
        found = [row[1] for row in connection.execute(f"PRAGMA table_info({relation})")]
    assert columns == [name for name in found if name not in NOT_PROMISED.get(relation, ())]


def test_the_documented_query_is_exact_beyond_64_bits(tmp_path: Path) -> None:
    """A hundred whole GPUs for a year, and a third of one that ends at an odd microsecond."""
    path = tmp_path / "l.db"
    odd = replace(segment(0, YEAR, quantity=GPU // 3), end_us=YEAR * 1_000_000 + 7)
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("large", segment(0, YEAR, quantity=100 * GPU)), pod("odd", odd), at=YEAR + 1))

    with closing(sqlite3.connect(path)) as connection:
        [(*_, price, seconds, microseconds)] = connection.execute(QUERY).fetchall()
        [(plain,)] = connection.execute("SELECT sum(quantity * (until_us - start_us)) FROM allocation_segments")
    exact = 100 * GPU * YEAR * 1_000_000 + GPU // 3 * (YEAR * 1_000_000 + 7)
    assert seconds * 10**6 + microseconds == exact
    assert isinstance(plain, float)
    hours = Fraction(exact, GPU_HOUR)
    assert hours == Fraction(seconds * 10**6 + microseconds, 3600 * 10**12)
    assert price == str(PRICE.per_gpu_hour)
