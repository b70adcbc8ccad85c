"""Quantities of Kubernetes have one parser."""

import pytest

from gputally.model.quantities import rounded_up, whole


@pytest.mark.parametrize(
    ("quantity", "decimals", "amount"),
    [
        ("2", 0, 2),
        (8, 0, 8),
        ("500m", 3, 500),
        ("500m", 0, 1),
        ("1.5", 3, 1500),
        ("100n", 3, 1),
        ("1.5Gi", 0, 1_610_612_736),
        ("3e2", 0, 300),
        ("12E-1", 1, 12),
        ("+.5k", 0, 500),
    ],
)
def test_a_quantity_is_rounded_up_to_its_unit(quantity: str | int, decimals: int, amount: int) -> None:
    assert rounded_up(quantity, decimals=decimals) == amount


@pytest.mark.parametrize("quantity", ["", ".", "-1", "1x", "1 Gi", "1gi", "1e", "one"])
def test_anything_else_is_not_a_quantity(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        rounded_up(quantity)


@pytest.mark.parametrize(("quantity", "amount"), [("1.0", 1), ("2000m", 2), ("1k", 1000), ("0.5k", 500)])
def test_a_whole_quantity_may_be_written_as_a_fraction(quantity: str, amount: int) -> None:
    assert whole(quantity) == amount


@pytest.mark.parametrize("quantity", ["1.5", "500m", "1n", "1e-1"])
def test_a_fraction_is_not_whole(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        whole(quantity)
