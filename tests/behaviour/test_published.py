from tests.behaviour.published import published

LABELS = {"tier": "none", "tenant": "unassigned", "state": "running"}


def test_a_group_is_the_sum_of_its_series_of_all_models() -> None:
    """A pod that is told before its node counts as of an unknown model for a moment, which is then taken back."""
    samples = {
        ("gputally_allocated_gpu_seconds_total", frozenset((LABELS | {"gpu_model": model}).items())): value
        for model, value in {"A100": 42645.0, "unknown": 0.314768}.items()
    }

    assert published(samples) == {("time", "none", "unassigned", "running"): 42645.314768}
