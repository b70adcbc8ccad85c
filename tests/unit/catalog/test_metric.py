import pytest

from gputally.catalog.metric import Metric, MetricType, Row, Stability, lint, lint_catalog


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
def test_a_name_by_the_conventions_passes(metric: Metric[object]) -> None:
    assert lint(metric) == []


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
def test_a_name_against_the_conventions_is_told_the_remedy(name: str, problem: str) -> None:
    [found] = lint(gauge(name))

    assert found.startswith(f"{name}: ")
    assert problem in found


@pytest.mark.parametrize("help_text", ["", "GPUs", "GPUs. And more.", "GPUs\nthat exist.", "all GPUs.", "GPUs: 5"])
def test_a_help_that_is_not_one_sentence_is_reported(help_text: str) -> None:
    [found] = lint(gauge("gputally_gpus", help=help_text))

    assert "one sentence" in found


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
def test_a_label_that_would_hurt_is_reported(labels: tuple[str, ...], problem: str) -> None:
    [found] = lint(gauge("gputally_gpus", labels=labels))

    assert problem in found


@pytest.mark.parametrize(("kind", "suffix"), [(MetricType.COUNTER, "_total"), (MetricType.INFO, "_info")])
def test_a_name_without_the_ending_of_its_kind_is_no_metric(kind: MetricType, suffix: str) -> None:
    with pytest.raises(ValueError, match=suffix):
        of_kind(kind, "gputally_gpus")


@pytest.mark.parametrize(
    ("metric", "family"),
    [
        (of_kind(MetricType.COUNTER, "gputally_gpu_seconds_total"), "gputally_gpu_seconds"),
        (of_kind(MetricType.INFO, "gputally_build_info"), "gputally_build"),
        (of_kind(MetricType.GAUGE, "gputally_gpus"), "gputally_gpus"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_the_family_is_the_name_without_the_ending_of_its_kind(metric: Metric[object], family: str) -> None:
    assert metric.family == family


def test_a_catalog_of_good_metrics_has_no_problem() -> None:
    assert lint_catalog(GOOD) == []


def test_a_catalog_reports_the_problems_of_each_metric() -> None:
    assert lint_catalog([gauge("other_gpus"), gauge("gputally_idle_hours")]) == [
        *lint(gauge("other_gpus")),
        *lint(gauge("gputally_idle_hours")),
    ]


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
def test_names_that_two_metrics_would_expose_are_reported(
    first: Metric[object], second: Metric[object], clash: str
) -> None:
    assert lint_catalog([first, second]) == [f"{clash}: exposed by 2 metrics; rename one"]


def test_a_metric_is_alpha_until_it_is_promised() -> None:
    assert gauge("gputally_gpus").stability is Stability.ALPHA


def test_the_rows_of_a_metric_are_a_function_of_its_view() -> None:
    def rows(view: dict[str, int]) -> list[Row]:
        return [Row((tier,), gpus) for tier, gpus in view.items()]

    metric = Metric(name="gputally_gpus", kind=MetricType.GAUGE, help="GPUs that exist.", labels=("tier",), rows=rows)

    assert list(metric.rows({"prod": 8})) == [Row(("prod",), 8)]
