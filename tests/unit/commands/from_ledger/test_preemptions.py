"""`gputally preemptions` lists who lost GPUs, why, to which tier, and how long each step took."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.disruptions import Cause, Preemptor
from gputally.model.units import COST_UNIT, GPU_HOUR
from tests.conftest import Golden
from tests.contract.records import BY, DISRUPTION, LOST_WORK, pod, segment, step, us
from tests.unit.commands.sample import CLUSTER, Runner

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
    by=BY,
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
    by=None,
)
LOST = replace(
    LOST_WORK,
    gpu_time=6 * GPU_HOUR,
    costs=(("EUR", 9 * COST_UNIT),),
    members=2,
    stalled_gpu_time=GPU_HOUR // 2,
    at_intervals=((600_000_000, GPU_HOUR // 8), (1_800_000_000, GPU_HOUR // 4), (3_600_000_000, GPU_HOUR)),
)
DELETED = replace(RECLAIMED, victim_uid="d", victim_name="pod-d", cause=Cause.DELETION, is_certain=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "gputally.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(
            step(
                pod("a", segment(900, 1035), node_uid="uid-n1"),
                pod("b", segment(1071, 1791), node_uid="uid-n1", scheduled_us=us(1071)),
                at=2000,
                victims={each.victim_uid: each for each in (PREEMPTED, RECLAIMED, DELETED)},
                lost_work={"a": LOST},
            )
        )
    return path


RESTARTED = replace(
    DISRUPTION,
    victim_uid="a/restart-900",
    victim_name="pod-crash",
    reported=Cause.CONTAINER_RESTART,
    cause=Cause.CONTAINER_RESTART,
    decided_us=us(1200),
    requested_us=None,
    exit_code=1,
)


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("by", ["pod", "job"])
def test_restarts_of_containers_are_no_disrupted_pods_and_named_in_plain_words_where_they_are_listed(
    path: Path, run: Runner, by: str, output: str
) -> None:
    arguments = ("preemptions", "--ledger", path, "--window", "all", "--output", output)
    before = run(*arguments, "--by", by).out
    with SqliteLedger(path) as ledger:
        lost = replace(LOST, victim_uid=RESTARTED.victim_uid, pods=(), members=12)
        ledger.write(
            step(
                at=2000,
                victims={RESTARTED.victim_uid: RESTARTED},
                lost_work={RESTARTED.victim_uid: lost},
                live=None,
            )
        )

    assert run(*arguments, "--by", by).out == before
    only = run(*arguments, "--cause", "container_restart").out
    both = run(*arguments, "--cause", "container_restart", "--cause", "preemption").out
    assert ["pod-crash" in each for each in (only, both)] == [True, True]
    if output == "table":
        restarts = "12 restarts of containers, whose pods kept their GPUs\n"
        assert f"\n{restarts}lost up to 6.00 GPU-h;" in only
        assert f"\n1 pods with 1 GPUs, 1 against a disruption budget; {restarts}" in both


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
    assert lines[1][2:] == ["preemption", "ml/pod-a", "low", "1", "high", "34", "90", "<6.00", "<9.00", "EUR"]
    assert lines[2][2:] == ["spot_reclaim?", "ml/pod-c", "low", "1"]
    assert "\n2 pods with 2 GPUs, 1 of an uncertain cause (?), 1 against a disruption budget\n" in found.out
    assert (
        "\nlost up to 6.00 GPU-h; with checkpoints every 1h 1.00, every 30m 0.25, every 10m 0.12\n"
        "Lost work counts from the accounting start, 1970-01-01 00:16:40 UTC; < marks upper bounds: a pod stated no "
        "checkpoint.\n\n" in found.out
    )
    assert max(map(len, found.out.splitlines())) <= 120


def test_totals_say_what_each_tier_bought_destroyed_and_left_stranded(path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--window", "all").out
    document = json.loads(run("preemptions", "--ledger", path, "--window", "all", "--output", "json").out)

    [head, total, _, _] = found.splitlines()[-4:]
    assert head.split("  ")[0] == "by tier"
    assert total.split() == ["high", "1", "1", "0.20", "<6.00", "0.50", "0.01"]
    [first, second] = document["rows"]
    assert (first["taken_gpus"], first["bought_gpu_hours"], first["stranded_gpu_hours"]) == (1, 0.2, 0.01)
    assert (second["bought_gpu_hours"], second["stranded_gpu_hours"]) == (None, None)
    assert document["totals"] == [
        {
            "preemptor_tier": "high",
            "preemptions": 1,
            "preempted_gpus": 1,
            "lost_gpu_hours": 6,
            "is_lost_upper_bound": True,
            "stalled_gpu_hours": 0.5,
            "bought_gpu_hours": 0.2,
            "valued_preemptions": 1,
            "stranded_gpu_hours": 0.01,
        }
    ]


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
    assert first["lost_gpu_hours_at"] == {"10m": 0.125, "30m": 0.25, "1h": 1}
    assert first["stalled_gpu_hours"] == 0.5
    assert second["lost_gpu_hours"] is None


def test_without_names_a_preemptor_is_its_tier_alone(path: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", path, "--window", "all", "--output", "csv", "--tiers-only").out

    [first, _] = csv.DictReader(io.StringIO(found))
    assert first["preemptor_tier"] == "high"
    assert (first["preemptor_namespace"], first["preemptor"], first["preemptor_uid"]) == ("", "", "")
    assert (first["taken_gpus"], first["bought_gpu_hours"]) == ("1", "")
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


def test_a_column_that_no_victim_has_is_named_with_those_it_has(
    path: Path, run: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("preemptions", "--ledger", path, "--where", "queue=a")

    assert "--where: 'queue=a' is not valid; use COLUMN=VALUE with one of tier, tenant" in capsys.readouterr().err


PERMITTED = replace(
    BY,
    victim_priority=100,
    victim_class="batch",
    preemptor=Preemptor(uid="x", namespace="prod", name="chat", tier="high", priority=9000, class_name="top"),
)
TOGETHER = [
    replace(
        PREEMPTED,
        victim_uid=uid,
        victim_name=f"pod-{uid}",
        job_preemption="a",
        decided_us=us(1000 + late),
        by=PERMITTED,
    )
    for late, uid in enumerate("ab")
]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(
            step(
                at=2000,
                victims={each.victim_uid: each for each in (*TOGETHER, RECLAIMED)},
                lost_work={uid: replace(LOST, victim_uid=uid) for uid in "ab"},
            )
        )
    return path


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("by", ["pod", "job"])
def test_preemptions_are_as_recorded(path: Path, jobs: Path, run: Runner, golden: Golden, by: str, output: str) -> None:
    ledger = path if by == "pod" else jobs
    found = run("preemptions", "--ledger", ledger, "--window", "all", "--by", by, "--output", output)

    assert (found.status, found.err) == (0, "")
    golden.check(f"preemptions-by-{by}.{output}", found.out)


def test_by_job_pods_that_were_preempted_together_are_one_row(jobs: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", jobs, "--window", "all", "--by", "job")

    head, row = (line.split() for line in found.out.splitlines()[2:4])
    assert head[:5] == ["decided", "job", "tier", "pods", "gpus"]
    assert row[2:] == [
        *("ml/train", "low", "2", "2", "high", "yes", "<12.00", "<18.00", "EUR"),
        *("checkpoint,", "priority"),
    ]
    assert (
        "preempted jobs: 1, pods: 2, GPUs: 2\n"
        "lost up to 12.00 GPU-h; with checkpoints every 1h 2.00, every 30m 0.50, every 10m 0.25\n"
        "Lost work counts from the accounting start, "
    ) in found.out
    assert found.out.endswith("\nRecords of preemptions and other disruptions exist from 1970-01-01 00:16:40 UTC on.\n")


def test_by_job_csv_has_the_rule_and_the_advice_in_words(jobs: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", jobs, "--window", "all", "--by", "job", "--output", "csv").out

    [row] = csv.DictReader(io.StringIO(found))
    assert (row["id"], row["pods"], row["preemptors"]) == ("a", "pod-a; pod-b", "prod/chat")
    assert row["rules"].startswith("priority 9000 of class top is above priority 100 of class batch, policy ")
    assert "Pods of a PriorityClass of 9000 or more would not have been preempted; theirs is 100." in row["advice"]


def test_a_record_belongs_to_the_period_in_which_it_began(jobs: Path, run: Runner) -> None:
    def count(window: str) -> int:
        flags = ("--window", window, "--by", "job", "--output", "json")
        return len(json.loads(run("preemptions", "--ledger", jobs, *flags).out)["rows"])

    assert count("1970-01-01T00:16:40Z/1970-01-01T00:16:41Z") == 1
    assert count("1970-01-01T00:16:41Z/1970-01-01T00:20:00Z") == 0


def test_by_job_there_are_preemptions_only(jobs: Path, run: Runner) -> None:
    found = run("preemptions", "--ledger", jobs, "--by", "job", "--cause", "eviction")

    assert found.status == 2
    assert "--cause: --by job lists only preemptions" in found.err


@pytest.fixture
def cascade(tmp_path: Path) -> Path:
    """Batch loses to training, and its replacement takes from interactive ten seconds later."""
    path = tmp_path / "cascade.db"
    batch = replace(PREEMPTED, victim_uid="b1", victim_name="batch-0", victim_tier="batch", replacement_uid="b2")
    other = {"victim_uid": "n1", "victim_name": "notebook", "victim_tier": "interactive", "victim_tenant": "blue"}
    notebook = replace(PREEMPTED, **other, decided_us=us(1010), replacement_uid="")
    training, again = (
        Preemptor(uid=uid, namespace="ml", name=uid, tier=tier) for uid, tier in (("t", "training"), ("b2", "batch"))
    )
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        found = {
            "b1": replace(batch, by=replace(BY, preemptor=training, preemptor_tier="training")),
            "n1": replace(notebook, by=replace(BY, preemptor=again, preemptor_tier="batch")),
        }
        ledger.write(step(at=2000, victims=found))
    return path


def test_a_cascade_is_linked_in_json_and_told_below_the_table(cascade: Path, run: Runner) -> None:
    arguments = ("preemptions", "--ledger", cascade, "--window", "all")

    rows = json.loads(run(*arguments, "--output", "json").out)["rows"]
    assert [(row["id"], row["follows"], row["cascade"]) for row in rows] == [("b1", None, "b1"), ("n1", "b1", "b1")]
    assert (
        "Cascades: preemptions by pods that replace a victim\n"
        "  01-01 00:16:40 ml/batch-0 (batch) lost its GPUs to training; 01-01 00:16:50 its replacement preempted "
        "ml/notebook (interactive)\n"
    ) in run(*arguments).out


def test_links_do_not_name_victims_of_other_tenants(cascade: Path, run: Runner) -> None:
    arguments = ("preemptions", "--ledger", cascade, "--window", "all", "--output", "json", "--tiers-only")

    [row] = json.loads(run(*arguments, "--where", "tenant=blue").out)["rows"]
    assert (row["id"], row["follows"], row["cascade"]) == ("n1", None, None)


def test_an_earlier_preemption_just_outside_the_period_is_linked(cascade: Path, run: Runner) -> None:
    period = "1970-01-01T00:16:45Z/1970-01-01T00:20:00Z"

    [row] = json.loads(run("preemptions", "--ledger", cascade, "--window", period, "--output", "json").out)["rows"]
    assert (row["id"], row["follows"]) == ("n1", "b1")
