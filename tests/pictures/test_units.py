import math

import pytest

from hack.pictures.units import show
from monitoring import unit as units


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.632, "percentunit", "63.2 %"),
        (138, "s", "2.3 min"),
        (0.0042, "s", "4.2 ms"),
        (0, "s", "0 s"),
        (13.2e9, "bytes", "12.3 GiB"),
        (1234.4, "currencyUSD", "$1,234"),
        (-3.5, "currencyEUR", "-€3.5"),
        (5_600_000, "short", "5.6 Mil"),
        (12_345.67, "none", "12,346"),
        (0.1 + 0.2, "", "0.3"),
        (-0.0, "none", "0"),
        (0.00002, "none", "2.00e-05"),
        (41_200, "watt", "41.2 kW"),
        (12.25, "suffix:GPU-h", "12.2 GPU-h"),
        (1200, "cps", "1.2 K c/s"),
        (1_780_876_800_000, "dateTimeAsIso", "2026-06-08 00:00:00"),
        (math.nan, "s", "NaN"),
        (math.inf, "bytes", "+Inf"),
    ],
)
def test_a_value_reads_as_a_person_expects(value: float, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_decimals_asked_for_are_all_shown() -> None:
    assert show(1_234_567.8, "currencyUSD", decimals=2) == "$1,234,567.80"
    assert show(-0.0001, "none", decimals=2) == "0.00"


@pytest.mark.parametrize("unit", [each.grafana for each in vars(units).values() if isinstance(each, units.Unit)])
def test_every_unit_that_panels_have_is_known(unit: str) -> None:
    assert show(1, unit)
