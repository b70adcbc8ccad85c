"""docs/posture.md and docs/permissions.md say what `gputally posture` does."""

from pathlib import Path

import pytest

from gputally.cli import main
from gputally.posture.checks.check_table import CHECKS
from gputally.posture.objects import KINDS
from tests.docs.pages import ROOT, TEXTS, blocks, table

PAGE = TEXTS["docs/posture.md"]


def test_every_check_is_documented_with_its_severity() -> None:
    assert [(name, severity) for name, severity, _ in table(PAGE, "Check")] == [
        (check.name, check.severity) for check in CHECKS
    ]


def test_the_permissions_of_the_caller_are_documented() -> None:
    rows = table(TEXTS["docs/permissions.md"], "Listed resource")
    documented = {
        (resource, "" if group == "core" else group) for names, group, _ in rows for resource in names.split(", ")
    }

    assert documented == {(kind.resource, kind.group) for kind in KINDS}


def test_the_documented_job_has_no_findings(tmp_path: Path) -> None:
    [job, accepting] = blocks(PAGE, "yaml")
    high = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n"
    own = high.replace("high", "training-low").replace("value: 9", "value: 1")
    file = tmp_path / "job.yaml"
    file.write_text(f"{high}---\n{own}---\n{job}")

    assert main(["posture", str(file)]) == 0
    file.write_text(high.replace("high", "training").replace("value: 9", "value: 900") + "---\n" + accepting)
    assert main(["posture", str(file)]) == 0
    file.write_text(file.read_text().replace("serving-below-training", "other"))
    assert main(["posture", str(file)]) == 1


@pytest.mark.parametrize(("number", "name"), [(0, "posture.table"), (1, "posture-observed.table")])
def test_the_documented_output_is_that_of_the_recorded_posture(number: int, name: str) -> None:
    shown = blocks(PAGE, "text")[number]
    recorded = (ROOT / "tests" / "golden" / "recorded" / name).read_text().splitlines()

    assert [line for line in shown.splitlines() if line not in recorded] == []
