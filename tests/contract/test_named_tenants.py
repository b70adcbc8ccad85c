"""Which tenants have records with a name, on all back-ends: allocations, waits, missing pods and disruptions."""

import pytest
from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import DISRUPTION, WAIT, pod, segment, step
from tests.fakes.waits_ledger import QUOTA

WAITED = PendingSegmentRow(uid="w", namespace="lab", name="waits", wait=replace(WAIT, tenant="green"))
LACKING = replace(QUOTA, tenant="blue", job="missing")
LOST = replace(DISRUPTION, victim_tenant="black", node="gone", victim_name="victim")


@pytest.fixture(autouse=True)
def _records(ledger: Ledger) -> None:
    ledger.write(
        step(
            pod("a", segment(1000, 1400)),
            at=1500,
            waits={("w", WAITED.wait.from_us): WAITED},
            uncreated_waits={(LACKING.namespace, LACKING.uid, LACKING.from_us): LACKING},
            victims={"a": LOST},
        )
    )


@pytest.mark.parametrize(
    ("column", "glob", "tenants"),
    [
        ("tenant", "re?", {"red"}),
        ("tenant", "visoin", set()),
        ("tenant", "[!r]*", {"green", "blue", "black"}),
        ("tier", "low", {"green", "blue", "black"}),
        ("tier", "a tier*", {"red"}),
        ("namespace", "ml", {"red", "blue", "black"}),
        ("namespace", "lab", {"green"}),
        ("namespace", "ML", set()),
        ("pod", "pod-a", {"red"}),
        ("pod", "waits", {"green"}),
        ("pod", "victim", {"black"}),
        ("job", "missing", {"blue"}),
        ("job", "train", {"red", "black"}),
        ("job_kind", "Job", {"red", "blue", "black"}),
        ("node", "gone", {"black"}),
        ("queue", "q", {"red"}),
        ("resource", "*", {"red"}),
        ("occupying_tier", "high", {"green"}),
    ],
)
def test_a_name_is_known_from_records_of_every_kind(
    reader: LedgerReader, column: str, glob: str, tenants: set[str]
) -> None:
    assert reader.tenants_named(column, glob) == tenants


def test_another_column_is_refused(reader: LedgerReader) -> None:
    with pytest.raises(ValueError, match="uid: not a dimension"):
        reader.tenants_named("uid", "*")
