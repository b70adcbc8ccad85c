import pytest

from gputally.catalog.metric import Metric, MetricType
from monitoring.check.metric_names import problems


def gauge(name: str, *, help: str = "GPUs that exist.", labels: tuple[str, ...] = ()) -> Metric[object]:  # noqa: A002 - as Metric names it
    return Metric(name=name, kind=MetricType.GAUGE, help=help, labels=labels, rows=lambda _: ())


def of_kind(kind: MetricType, name: str) -> Metric[object]:
    return Metric(name=name, kind=kind, help="GPUs that exist.", rows=lambda _: ())


GOOD = [
    of_kind(MetricType.COUNTER, "gputally_allocated_gpu_seconds_total"),
    of_kind(MetricType.GAUGE, "gputally_capacity_gpus"),
    of_kind(MetricType.GAUGE, "gputally_last_sync_timestamp_seconds"),
    of_kind(MetricType.HISTOGRAM, "gputally_scheduling_duration_seconds"),
    of_kind(MetricType.INFO, "gputally_build_info"),
    gauge("gputally_used_ratio", labels=("tier", "gpu_model", "h100_count")),
]


@pytest.mark.parametrize("metric", GOOD, ids=lambda metric: metric.name)
def test_a_conventional_name_passes(metric: Metric[object]) -> None:
    assert list(problems([metric])) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("other_gpus", "use gputally_"),
        ("gputally", "use gputally_"),
        ("gputally_GPUs", "use gputally_"),
        ("gputally__gpus", "use gputally_"),
        ("gputally_gpus_", "use gputally_"),
        ("gputally:gpus", "use gputally_"),
        ("gputally_gpus_by_tier", "remove by from the name"),
        ("gputally_gauge_gpus", "remove the type gauge from the name"),
        ("gputally_gpus_total", "_total is reserved"),
        ("gputally_node_info", "_info is reserved"),
        ("gputally_gpus_count", "_count is reserved"),
        ("gputally_gpus_sum", "_sum is reserved"),
        ("gputally_gpus_bucket", "_bucket is reserved"),
        ("gputally_gpus_created", "_created is reserved"),
        ("gputally_idle_hours", "use seconds"),
        ("gputally_wait_ms", "use seconds"),
        ("gputally_memory_gib", "use bytes"),
        ("gputally_used_percent", "use ratio"),
        ("gputally_wait_second", "end in _seconds"),
        ("gputally_sync_timestamp", "end in _timestamp_seconds"),
    ],
)
def test_an_unconventional_name_is_reported_with_the_fix(name: str, problem: str) -> None:
    [found] = problems([gauge(name)])

    assert found.place == name
    assert problem in found.text


@pytest.mark.parametrize("help_text", ["", "GPUs", "GPUs. And more.", "GPUs\nthat exist.", "all GPUs.", "GPUs: 5"])
def test_a_help_that_is_not_one_sentence_is_reported(help_text: str) -> None:
    [found] = problems([gauge("gputally_gpus", help=help_text)])

    assert "one sentence" in found.text


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (("le",), "belongs to the format"),
        (("quantile",), "belongs to the format"),
        (("cluster",), "clashes with target labels"),
        (("instance",), "clashes with target labels"),
        (("type",), "clashes with target labels"),
        (("Tier",), "lower-case"),
        (("__name__",), "lower-case"),
        (("gpu-model",), "lower-case"),
        (("tier", "tenant", "tier"), "declared 2 times"),
    ],
)
def test_a_reserved_or_invalid_label_is_reported(labels: tuple[str, ...], problem: str) -> None:
    [found] = problems([gauge("gputally_gpus", labels=labels)])

    assert problem in found.text


def test_a_catalog_of_good_metrics_has_no_problem() -> None:
    assert list(problems(GOOD)) == []


def test_a_catalog_reports_the_problems_of_each_metric() -> None:
    found = problems([gauge("other_gpus"), gauge("gputally_idle_hours")])

    assert [each.place for each in found] == ["other_gpus", "gputally_idle_hours"]


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        (gauge("gputally_gpus"), gauge("gputally_gpus"), "gputally_gpus"),
        (of_kind(MetricType.COUNTER, "gputally_gpus_total"), gauge("gputally_gpus"), "gputally_gpus"),
        (
            of_kind(MetricType.COUNTER, "gputally_pods_total"),
            of_kind(MetricType.INFO, "gputally_pods_info"),
            "gputally_pods",
        ),
    ],
    ids=["same name", "counter and gauge", "counter and info"],
)
def test_a_name_exposed_by_two_metrics_is_reported(first: Metric[object], second: Metric[object], clash: str) -> None:
    [found] = problems([first, second])

    assert (found.place, found.text) == (clash, "exposed by 2 metrics; rename one")
