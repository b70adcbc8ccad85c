"""`gputally preemptions` lists who lost GPUs, why, to which tier, and how long each step took."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from gputally.model.disruptions.disruption import Cause
from gputally.model.units import COST_UNIT, GPU_HOUR
from tests.contract.records import DISRUPTION, LOST_WORK, PREEMPTION, pod, segment, step, us
from tests.unit.ledger_commands.sample import CLUSTER, Runner

PREEMPTED = replace(
    DISRUPTION,
    reported=Cause.PREEMPTION,
    cause=Cause.PREEMPTION,
    decided_us=us(1000),
    requested_us=us(1001),
    stopped_us=us(1035),
    released_us=us(1035),
    reused_us=us(1037),
    replaced_us=us(1090),
    replacement_uid="again",
    budget_violated=True,
)
RECLAIMED = replace(
    PREEMPTED,
    victim_uid="c",
    victim_name="pod-c",
    victim_tenant="blue",
    cause=Cause.SPOT_RECLAIM,
    is_certain=False,
    decided_us=us(1100),
    requested_us=None,
    stopped_us=None,
    released_us=us(1110),
    replaced_us=None,
    replacement_uid="",
    budget_violated=None,
)
LOST = replace(
    LOST_WORK,
    gpu_time=6 * GPU_HOUR,
    costs=(("EUR", 9 * COST_UNIT),),
    members=2,
    stalled_gpu_time=GPU_HOUR // 2,
    at_intervals=((1, GPU_HOUR // 8), (2, GPU_HOUR // 4), (3, GPU_HOUR)),
)
DELETED = replace(RECLAIMED, victim_uid="d", victim_name="pod-d", cause=Cause.DELETION, is_certain=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "gputally.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(
            step(
                pod("a", segment(900, 1035)),
                at=2000,
                disruptions={each.victim_uid: each for each in (PREEMPTED, RECLAIMED, DELETED)},
                lost_work={"a": LOST},
                counted_preemptions={"a": replace(PREEMPTION, decided_us=us(1000))},
            )
        )
    return path


def test_csv_says_what_violated_a_disruption_budget_and_is_empty_where_nobody_knows(path: Path, run: Runner) -> None:
    arguments = ("preemptions", "--ledger", path, "--window", "all")

    rows = csv.DictReader(io.StringIO(run(*arguments, "--output", "csv").out))
    assert {row["pod"]: row["budget_violated"] for row in rows} == {"pod-a": "True", "pod-c": ""}


def test_the_table_says_when_why_and_how_long(path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--window", "all")

    lines = [line.split() for line in found.out.splitlines()[2:5]]
    assert lines[0] == [
        "decided",
        "cause",
        "victim",
        "tier",
        "gpus",
        "by",
        "tier",
        "stop",
        "s",
        "replaced",
        "s",
        "lost",
        "GPU-h",
        "cost",
    ]
    assert lines[1][2:] == ["preemption", "ml/pod-a", "low", "1", "high", "34", "90", "<6.00", "9.00", "EUR"]
    assert lines[2][2:] == ["spot_reclaim?", "ml/pod-c", "low", "1"]
    assert found.out.endswith("2 pods with 2 GPUs, 1 of an uncertain cause (?), 1 against a disruption budget\n")


def test_json_has_every_time_and_the_preemptor(path: Path, run: Runner) -> None:
    document = json.loads(run("preemptions", "--ledger", path, "--window", "all", "--output", "json").out)

    [first, second] = document["rows"]
    assert (first["id"], first["gpus"], first["stop_seconds"], first["replace_seconds"]) == ("a", 1, 34, 90)
    assert (first["grace_seconds"], first["grace_exceeded_seconds"]) == (30, 4)
    assert (first["preemptor_namespace"], first["preemptor"], first["preemptor_tier"]) == ("ml", "pod-b", "high")
    assert first["is_preemptor_inferred"] is False
    assert second["is_certain"] is False
    assert (second["requested"], second["preemptor"], second["grace_exceeded_seconds"]) == (None, None, None)


def test_json_says_what_was_lost_and_how_well_that_is_known(path: Path, run: Runner) -> None:
    document = json.loads(run("preemptions", "--ledger", path, "--window", "all", "--output", "json").out)

    [first, second] = document["rows"]
    assert (first["lost_gpu_hours"], first["lost_costs"], first["lost_pods"]) == (6, {"EUR": 9}, 2)
    assert (first["lost_basis"], first["is_lost_upper_bound"], first["is_lost_final"]) == ("start", True, True)
    assert [first[f"lost_gpu_hours_at_{every}"] for every in ("10m", "30m", "1h")] == [0.125, 0.25, 1]
    assert first["stalled_gpu_hours"] == 0.5
    assert second["lost_gpu_hours"] is None


def test_without_names_a_preemptor_is_its_tier_alone(path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--window", "all", "--output", "csv", "--tiers-only").out

    [first, _] = csv.DictReader(io.StringIO(found))
    assert first["preemptor_tier"] == "high"
    assert (first["preemptor_namespace"], first["preemptor"], first["preemptor_uid"]) == ("", "", "")
    assert "pod-b" not in found


@pytest.mark.parametrize(
    ("flags", "uids"),
    [
        (("--cause", "deletion"), ["d"]),
        (("--cause", "deletion", "--cause", "preemption"), ["a", "d"]),
        (("--where", "tenant=blue"), ["c"]),
        (("--where", "pod=pod-?", "--where", "tier=low"), ["a", "c"]),
        (("--where", "job=other"), []),
    ],
)
def test_filters_and_causes_choose_the_rows(flags: tuple[str, ...], uids: list[str], path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--window", "all", "--output", "json", *flags)

    assert [row["id"] for row in json.loads(found.out)["rows"]] == uids


def test_a_column_that_no_victim_has_is_named_with_those_it_has(path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--where", "queue=a")

    assert found.status == 2
    assert "--where: no column queue of victims; use tier, tenant, namespace" in found.err
