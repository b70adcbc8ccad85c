"""The allocation of a pod from the samples of kube-state-metrics: times, end, outcome, tenant and job."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from gputally.model.allocation import End
from tests.fakes.kube_state import TARGET, KubeState, LifeOfPod
from tests.fakes.prometheus_history import FakePrometheus
from tests.unit.commands.pod_history import (
    CONFIG,
    LAST,
    PRICES,
    SCRAPES,
    T0,
    allocations,
    hours,
    imported,
    life,
    rows,
    running,
    us,
    vanishing,
)
from tests.unit.commands.sample import Runner

ENDS = "GPU-hours are of pods whose end was not observed"
PREEMPTED = "PreemptionByScheduler"


def test_a_finished_pod_has_the_exact_times_of_the_api(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, tmp_path: Path
) -> None:
    state.pod(life("a", class_name="prod-high", owner=("Job", "train"), node="n2"))
    (tmp_path / "prices.yaml").write_text(PRICES)

    status, out, err = imported(run, history, ledger, "--prices.file", tmp_path / "prices.yaml")

    assert (status, err) == (0, "")
    assert out == (
        "1 pods new, 0 changed, 0 unchanged; 0 without GPUs or never started; 0 rejected\n"
        "accounted from 2025-10-01 00:00:00 to 2025-10-01 05:59:37 UTC; scraped every 30 s\n"
    )
    found = allocations(ledger)["a"]
    assert [found.created_us, found.scheduled_us, found.started_us, found.end_us] == us(3600, 3605, 3610, 7204)
    assert (found.end_by, found.gap, found.exit_code) == (End.FINISHED, None, 0)
    [row] = rows(run, ledger, "tenant", "tier", "job", "gpu_model", "node", "pool", "outcome")
    assert [row[name] for name in ("tenant", "tier", "job_kind", "job", "gpu_model", "node", "pool", "outcome")] == [
        *("red", "prod-high", "Job", "train", "H100", "n2", "big", "succeeded")
    ]
    assert (row["gpu_hours"], row["cost"]) == ("7.997778", "31.991111")  # 3599 s x 8 GPUs, at 4 USD
    assert run("ledger", "check", "--ledger", ledger).status == 0


def test_an_end_that_only_scrapes_show_is_a_gap_to_the_next_scrape(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(vanishing("a", 7220))

    imported(run, history, ledger)

    found = allocations(ledger)["a"]
    assert found.gap is not None
    assert [found.end_us, found.gap.from_us, found.gap.to_us] == us(7207, 7207, 7237)
    assert (found.end_by, found.outcome) == (End.VANISHED, "unknown")


def test_import_and_report_say_what_rests_on_samples(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(vanishing("a", 7220))
    state.pod(vanishing("b", 7220, namespace="blue", gpus=2))
    state.pod(life("c"))

    out = imported(run, history, ledger).out
    noted = run("report", "--ledger", ledger, "--window", "all", "--by", "tenant").err
    filtered = run("report", "--ledger", ledger, "--window", "all", "--by", "tier", "--where", "tenant=blue").err
    hourly = run(
        "report", "--ledger", ledger, "--window", "all", "--by", "tenant,hour", "--where", "hour_of_day=01*"
    ).err
    before = run("report", "--ledger", ledger, "--window", "2025-10-01/2025-10-01T01:30", "--by", "tenant").err
    exact = run("report", "--ledger", ledger, "--window", "all", "--where", "job=pod-c").err

    lines = [
        f"10.01 {ENDS}, at most 0.0833 GPU-hours are missing; ends are known to 30 s",
        "  red: 8.00 GPU-hours, at most 0.0667 GPU-hours are missing; ends are known to 30 s",
        "  blue: 2.00 GPU-hours, at most 0.0167 GPU-hours are missing; ends are known to 30 s",
    ]
    assert out.splitlines()[2:] == [f"samples: {lines[0]}", *lines[1:]]
    assert noted.splitlines() == [f"gputally: {lines[0]}", *lines[1:]]
    assert filtered == f"gputally: 2.00 {ENDS}, at most 0.0167 GPU-hours are missing; ends are known to 30 s\n"
    assert (before, exact, hourly) == ("", "", noted)
    rows = json.loads(run("report", "--ledger", ledger, "--window", "all", "--output", "json").out)["rows"]
    assert {row["tenant"]: row["unobserved"] for row in rows} == {"red": 0.066667, "blue": 0.016666}  # in all 0.083333


def test_a_pod_that_is_there_at_the_last_scrape_runs_until_then(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(running("a"))

    imported(run, history, ledger)

    assert (allocations(ledger)["a"].end_us, allocations(ledger)["a"].outcome) == (None, "running")
    assert hours(run, ledger) == {"red": Decimal(f"{(LAST - T0 - 3605) * 8 / 3600:.6f}")}


def test_scrapes_that_failed_neither_end_a_pod_nor_hide_how_long_its_end_is_unknown(
    run: Runner, history: FakePrometheus, ledger: Path
) -> None:
    """Nothing was scraped from 1:50 to 2:30."""
    state = KubeState(history, [at for at in SCRAPES if not 6600 <= at - T0 < 9000])
    state.pod(running("stays"))
    state.pod(vanishing("ends", 7220))

    imported(run, history, ledger)

    found = allocations(ledger)
    assert found["stays"].outcome == "running"
    gap = found["ends"].gap
    assert gap is not None
    assert [gap.from_us, gap.to_us] == us(6577, 9007)


@pytest.mark.parametrize(
    ("pod", "ended"),
    [
        (life("a", phase="Failed", reason="Evicted"), ("failed", "Evicted")),
        (life("a", phase="Failed", deleting=7190, removed=7270), ("deleted", "")),
        (life("a", phase="Failed", deleting=7190, removed=7270, disruption=PREEMPTED), ("preempted", PREEMPTED)),
        (vanishing("a", 7220, deleting=7190, disruption=PREEMPTED), ("preempted", "")),
        (life("a", phase="Failed", deleting=7190, removed=7270, reason=PREEMPTED), ("preempted", PREEMPTED)),
        (vanishing("a", 7220, deleting=7190), ("deleted", "")),
        (life("a", deleting=9000, grace=0), ("succeeded", "")),
    ],
)
def test_the_outcome_is_that_of_phase_reason_and_deletion(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, pod: LifeOfPod, ended: tuple[str, str]
) -> None:
    state.pod(pod)

    imported(run, history, ledger)

    found = allocations(ledger)["a"]
    assert (found.outcome, found.reason) == ended


def test_a_terminal_pod_without_a_completion_time_ended_between_two_scrapes(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """It stays for hours; the query that first shows it as terminal is not that of its last sample."""
    state.pod(life("a", phase="Failed", has_completion=False, ended=7220, removed=None))

    imported(run, history, ledger)

    found = allocations(ledger)["a"]
    assert found.gap is not None
    assert [found.gap.from_us, found.gap.to_us] == us(7207, 7237)
    assert (found.end_by, found.outcome) == (End.TERMINAL, "failed")


def test_a_rejected_pod_never_held_gpus(run: Runner, history: FakePrometheus, state: KubeState, ledger: Path) -> None:
    state.pod(
        life("a", phase="Failed", has_completion=False, started=None, ended=3606, reason="UnexpectedAdmissionError")
    )

    imported(run, history, ledger)

    assert hours(run, ledger) == {}


def test_a_rejected_pod_that_waited_for_its_kubelet_never_held_gpus(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(
        life("a", phase="Failed", has_completion=False, started=None, accepted=7220, ended=7220, reason="NodeAffinity")
    )

    imported(run, history, ledger)

    assert hours(run, ledger) == {}


def test_a_pod_that_was_accepted_and_then_rejected_held_its_gpus_between(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """It initialized for an hour on 8 GPUs when its node rebooted."""
    reason = "UnexpectedAdmissionError"
    state.pod(life("a", phase="Failed", has_completion=False, started=None, accepted=3606, ended=7220, reason=reason))

    imported(run, history, ledger)

    found = allocations(ledger)["a"]
    assert found.gap is not None
    assert [found.gap.from_us, found.gap.to_us] == us(7207, 7237)
    assert (found.end_by, found.end_us) == (End.REJECTED, *us(7207))
    [row] = rows(run, ledger, "tenant")
    assert float(row["gpu_hours"]) == pytest.approx(8 * (7207 - 3605) / 3600, abs=1e-5)


def test_a_pod_whose_container_restarted_has_run_since_its_initialization(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a", started=7000))
    ids = {"namespace": "red", "pod": "pod-a", "uid": "a"}
    state.constant("kube_pod_container_status_restarts_total", ids | {"container": "main"}, 1, until=T0 + 10_000)
    state.constant("kube_pod_status_initialized_time", ids, T0 + 3611, until=T0 + 10_000)

    imported(run, history, ledger)

    assert [allocations(ledger)["a"].started_us] == us(3611)


def test_a_pod_that_was_never_seen_active_and_ran_nothing_never_started(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """So kubelets reject pods, for instance with OutOfnvidia.com/gpu."""
    state.pod(life("a", phase="Failed", has_completion=False, started=None, ended=3606))
    state.pod(life("b"))

    assert imported(run, history, ledger).out.startswith("1 pods new, 0 changed, 0 unchanged; 1 without GPUs or never ")


def test_rules_read_pod_and_namespace_labels(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    state.constant("kube_namespace_labels", {"namespace": "blue", "label_example_com_cost_centre": "c42"})
    state.pod(life("a", labels={"label_team": "vision"}, class_name="prod-1"))
    state.pod(life("b", namespace="blue"))
    state.pod(life("c", labels={"label_job_name": "x"}))

    imported(run, history, ledger, "--config.file", tmp_path / "config.yaml")

    found = {(row["tenant"], row["tier"], row["job"]) for row in rows(run, ledger, "tenant", "tier", "job")}
    assert found == {("vision", "gold", "pod-a"), ("c42", "batch", "pod-b"), ("red", "batch", "x")}


def test_a_label_that_changed_counts_as_last_seen(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    pod = life("a")
    state.pod(pod)
    ids = {"namespace": "red", "pod": "pod-a", "uid": "a"}
    state.constant("kube_pod_labels", ids | {"label_team": "zebra"}, since=pod.created, until=T0 + 8000)
    state.constant("kube_pod_labels", ids | {"label_team": "ant"}, since=T0 + 8000, until=pod.removed)

    imported(run, history, ledger, "--config.file", tmp_path / "config.yaml")

    assert set(hours(run, ledger)) == {"ant"}


def test_the_deployment_of_a_replica_set_is_the_job(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a", owner=("ReplicaSet", "web-5f")))
    owner = {"owner_kind": "Deployment", "owner_name": "web", "owner_is_controller": "true"}
    state.constant("kube_replicaset_owner", {"namespace": "red", "replicaset": "web-5f", **owner})

    imported(run, history, ledger)

    [row] = rows(run, ledger, "job")
    assert (row["job_kind"], row["job"]) == ("Deployment", "web")


def test_pairs_of_scrapers_and_a_replaced_target_count_once(run: Runner, history: FakePrometheus, ledger: Path) -> None:
    """Two Prometheus servers scrape at other seconds; kube-state-metrics moves to another address at 1:30."""
    cut = T0 + 5400
    for replica, shift in (("a", 0.0), ("b", 11.5)):
        for instance, times in (
            ("one", [at for at in SCRAPES if at < cut]),
            ("two", [at for at in SCRAPES if at >= cut]),
        ):
            target = TARGET | {"instance": instance, "prometheus_replica": replica}
            state = KubeState(history, [at + shift for at in times], target)
            state.node("n1", {"label_nvidia_com_gpu_product": "A100"})
            state.pod(life("a"))
            state.pod(vanishing("b", 7220))

    imported(run, history, ledger)

    found = allocations(ledger)
    assert [found["a"].scheduled_us, found["a"].end_us] == us(3605, 7204)
    gap = found["b"].gap
    assert gap is not None
    assert [gap.from_us // 100_000, gap.to_us // 100_000] == [(T0 + 7218) * 10 + 5, (T0 + 7237) * 10]
    assert hours(run, ledger) == {"red": Decimal("7.997778") + Decimal("8.030000")}
