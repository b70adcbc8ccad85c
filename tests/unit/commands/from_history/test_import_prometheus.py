"""`gputally import --format prometheus`: flags, credentials, large queries, rejected pods, a second import."""

import csv
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from gputally.model.allocation import End
from tests.fakes.kube_state import TARGET, KubeState
from tests.fakes.prometheus_history import FakePrometheus
from tests.unit.commands.pod_history import (
    CONFIG,
    SCRAPES,
    WINDOW,
    allocations,
    hours,
    imported,
    life,
    vanishing,
)
from tests.unit.commands.sample import Runner


def test_a_label_that_nothing_exports_is_named_with_the_remedy(
    run: Runner, history: FakePrometheus, ledger: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    KubeState(history, SCRAPES).pod(life("a"))

    err = imported(run, history, ledger, "--config.file", tmp_path / "config.yaml").err

    assert "no pod has the label team in kube_pod_labels, which a tenant rule reads" in err
    assert "--metric-labels-allowlist=pods=[team]" in err
    assert "--metric-labels-allowlist=nodes=[nvidia.com/gpu.product]" in err


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("kube_pod_info", "kube_pod_info: is missing"),
        ("kube_pod_status_scheduled_time", "kube_pod_status_scheduled_time: is missing, and kube_pod_start_time too"),
    ],
)
def test_a_pod_without_a_needed_series_is_rejected_with_the_reason(
    run: Runner, history: FakePrometheus, ledger: Path, missing: str, problem: str
) -> None:
    KubeState(history, SCRAPES).pod(life("a"))
    history.drop(missing)
    file = ledger.with_name("rejected.csv")

    status, out, err = imported(run, history, ledger, "--rejected", file)

    assert (status, out.splitlines()[0].rpartition("; ")[2]) == (9, "1 rejected")
    assert problem in err
    head, row = csv.reader(file.read_text().splitlines())
    assert (head, row[1]) == (["object", "series", "reason"], missing)


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "NaN", "1e+300", "-1"])
@pytest.mark.parametrize(
    "series",
    [
        "kube_pod_completion_time",
        "kube_pod_container_resource_requests",
        "kube_pod_container_state_started",
        "kube_pod_created",
        "kube_pod_status_phase",
        "kube_pod_status_scheduled_time",
    ],
)
def test_a_value_that_cannot_be_rejects_its_pod_and_no_other(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, series: str, value: str
) -> None:
    state.pod(life("a"))
    state.pod(life("b"))
    for labels in history.series:
        if (labels["__name__"], labels.get("uid")) == (series, "a") and labels.get("resource") != "cpu":
            history.corrupt(labels, value)

    status, out, err = imported(run, history, ledger)

    assert (status, out.splitlines()[0].rpartition("; ")[2]) == (9, "1 rejected")
    assert f"pod red/pod-a (a), {series}: {value} is n" in err
    assert set(allocations(ledger)) == {"b"}


def test_a_sample_of_a_node_that_cannot_be_is_named_and_its_pods_are_imported(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a"))
    for labels in history.series:
        if (labels["__name__"], labels.get("node")) == ("kube_node_status_capacity", "n1"):
            history.corrupt(labels, "+Inf")

    status, out, err = imported(run, history, ledger)

    assert (status, out.splitlines()[0].rpartition("; ")[2]) == (9, "1 rejected")
    assert "node n1, kube_node_status_capacity: +Inf is not a number of devices" in err
    assert set(allocations(ledger)) == {"a"}


def test_one_pod_without_a_uid_is_rejected_and_no_other(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a"))
    labels = {"namespace": "red", "pod": "forged", "container": "main", "resource": "nvidia_com_gpu"}
    state.constant("kube_pod_container_resource_requests", labels, 8)

    status, _, err = imported(run, history, ledger)

    assert (status, set(allocations(ledger))) == (9, {"a"})
    assert "pod red/forged, kube_pod_container_resource_requests: has no label uid" in err


def test_without_phases_the_samples_show_the_end(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a"))
    history.drop("kube_pod_status_phase")

    imported(run, history, ledger)

    assert allocations(ledger)["a"].end_by is End.VANISHED


def test_importing_again_changes_nothing_and_a_later_window_revises(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a"))
    state.pod(vanishing("b", 12_000))
    windows = (
        "2025-10-01/2025-10-01T02:30",
        WINDOW,
        WINDOW,
        "2025-10-01/2025-10-01T02:30",
        "2025-10-01T01:30/2025-10-01T06:00",
    )

    results = [imported(run, history, ledger, "--window", window).out.split(";")[0] for window in windows]

    assert results == [
        "2 pods new, 0 changed, 0 unchanged",
        "0 pods new, 1 changed, 1 unchanged",
        "0 pods new, 0 changed, 2 unchanged",
        "0 pods new, 0 changed, 2 unchanged",
        "0 pods new, 0 changed, 2 unchanged",
    ]
    assert run("ledger", "check", "--ledger", ledger).status == 0


def test_a_query_that_is_too_large_is_divided(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(vanishing("a", 7220))
    state.pod(life("b", node="n2"))
    history.most_samples = 500

    status, _, err = imported(run, history, ledger)

    assert (status, err, history.refusals > 0) == (0, "", True)
    assert hours(run, ledger) == {"red": Decimal("7.997778") + Decimal("8.004444")}


def test_a_server_that_cannot_compute_one_minute_is_named(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a"))
    history.most_samples = 0

    status, _, err = imported(run, history, ledger)

    assert status == 11
    assert "would load too many samples into memory in query execution, even for one minute" in err


def test_no_gpu_pods_and_no_server_are_errors(run: Runner, history: FakePrometheus, ledger: Path) -> None:
    status, out, err = imported(run, history, ledger)
    unreachable = run("import", "http://127.0.0.1:9", "--format", "prometheus", "--ledger", ledger)

    assert (status, out.startswith("0 pods new")) == (9, True)
    assert "no pod with GPUs in this period; docs/import.md lists the series that are read" in err
    assert unreachable.status == 11
    assert "check the URL" in unreachable.err
    assert not ledger.exists()


def test_credentials_and_matchers_are_sent(run: Runner, history: FakePrometheus, ledger: Path, tmp_path: Path) -> None:
    KubeState(history, SCRAPES, TARGET | {"cluster": "a"}).pod(life("a"))
    KubeState(history, SCRAPES, TARGET | {"cluster": "b"}).pod(life("b"))
    (tmp_path / "token").write_text("secret\n")

    imported(run, history, ledger, "--token-file", tmp_path / "token", "--matchers", 'cluster="a"')

    assert history.authorizations == {"Bearer secret"}
    assert set(allocations(ledger)) == {"a"}


def test_warnings_of_the_server_are_shown(run: Runner, history: FakePrometheus, state: KubeState, ledger: Path) -> None:
    state.pod(life("a"))
    history.warnings = ["a store is down"]

    assert "the answer may be incomplete: a store is down" in imported(run, history, ledger).err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("jobs.csv", "--format", "prometheus"), "URL: 'jobs.csv' is not a URL; use one such as http://localhost:9090"),
        (("http://localhost:9", "--window", "7d"), "--window: does not apply to --format csv; omit it"),
        (("http://localhost:9",), "FILE: 'http://localhost:9' is a URL; add --format prometheus, or name a file"),
        (
            ("http://x", "--format", "prometheus", "--zero", "2025-01-01"),
            "--zero: does not apply to --format prometheus",
        ),
        (
            ("http://x", "--format", "prometheus", "--window", "all"),
            "'all' is not a period of up to 800 days in the past",
        ),
        (("http://x", "--format", "prometheus", "--window", "x"), "--window: 'x' is not a period"),
        (("http://x", "--format", "prometheus", "--user", "me"), "--user: requires --password-file"),
    ],
)
def test_wrong_flags_are_named(run: Runner, ledger: Path, arguments: Sequence[str], problem: str) -> None:
    status, _, err = run("import", *arguments, "--ledger", ledger)

    assert status == 2
    assert problem in err
    assert not ledger.exists()
