import pytest

from gputally.catalog.metric import Metric, MetricType, Row, Stability


def of_kind(kind: MetricType, name: str) -> Metric[object]:
    return Metric(name=name, kind=kind, help="GPUs that exist.", rows=lambda _: ())


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


def test_a_metric_is_alpha_until_it_is_promised() -> None:
    assert of_kind(MetricType.GAUGE, "gputally_gpus").stability is Stability.ALPHA


def test_the_rows_of_a_metric_are_a_function_of_its_view() -> None:
    def rows(view: dict[str, int]) -> list[Row]:
        return [Row((tier,), gpus) for tier, gpus in view.items()]

    metric = Metric(name="gputally_gpus", kind=MetricType.GAUGE, help="GPUs that exist.", labels=("tier",), rows=rows)

    assert list(metric.rows({"prod": 8})) == [Row(("prod",), 8)]
