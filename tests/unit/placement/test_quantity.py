import pytest

from gputally.model.quantities import MOST
from gputally.placement.resource_requests import amount_of


@pytest.mark.parametrize(
    ("resource", "quantity", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "100m", 100),
        ("cpu", "0.5", 500),
        ("cpu", "1500u", 2),
        ("cpu", 2, 2000),
        ("cpu", "1e1", 10_000),
        ("memory", "1Gi", 2**30),
        ("memory", "1.5Ki", 1536),
        ("memory", "1G", 10**9),
        ("memory", "128e6", 128 * 10**6),
        ("memory", "1E", 10**18),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "8", 8),
        ("nvidia.com/gpu", "1k", 1000),
        ("memory", "+1Ki", 1024),
        ("memory", ".5Ki", 512),
    ],
)
def test_a_quantity_is_rounded_up_to_whole_units(resource: str, quantity: str | int, amount: int) -> None:
    assert amount_of(resource, quantity) == amount


@pytest.mark.parametrize("quantity", ["9" * 40, "9E", "1e99", "8Ei", 2**63, "9223372036854775807Ki"])
def test_a_quantity_has_at_most_64_bits(quantity: str | int) -> None:
    assert amount_of("cpu", quantity) == MOST


@pytest.mark.parametrize("quantity", ["", "-1", "1Zi", "one", "1e", ".", "1 Gi", "1e999", "9" * 1000, "\u0661"])
def test_anything_else_is_an_error(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity of cpu"):
        amount_of("cpu", quantity)
