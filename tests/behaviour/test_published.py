from tests.behaviour.published import published

LABELS = {"tier": "none", "tenant": "unassigned", "state": "running"}


def test_a_group_sums_its_series_over_all_gpu_models() -> None:
    """A pod observed before its node briefly counts as an unknown model; that is corrected later."""
    samples = {
        ("gputally_allocated_gpu_seconds_total", frozenset((LABELS | {"gpu_model": model}).items())): value
        for model, value in {"A100": 42645.0, "unknown": 0.314768}.items()
    }

    assert published(samples) == {("time", "none", "unassigned", "running"): 42645.314768}
