import pytest

from gputally_sim.quantities import amount_of


@pytest.mark.parametrize(
    ("resource", "quantity", "amount"),
    [
        ("cpu", "8", 8000),
        ("cpu", "250m", 250),
        ("cpu", "0.1", 100),
        ("memory", "64Gi", 64 * 2**30),
        ("memory", "1.5Ki", 1536),
        ("memory", "2G", 2_000_000_000),
        ("memory", "1m", 1),
        ("nvidia.com/gpu", "4", 4),
        ("pods", 110, 110),
        ("memory", "lots", 0),
        ("cpu", "-1", 0),
    ],
)
def test_quantities_are_read_as_the_api_server_reads_them(resource: str, quantity: str | int, amount: int) -> None:
    assert amount_of(resource, quantity) == amount
