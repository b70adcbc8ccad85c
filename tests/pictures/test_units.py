import math

import pytest

from hack.pictures.units import Reading, show


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.632, "percentunit", "63.2 %"),
        (63.2, "percent", "63.2 %"),
        (138, "s", "2.3 min"),
        (14_760, "s", "4.1 h"),
        (0.0042, "s", "4.2 ms"),
        (0, "s", "0 s"),
        (200_000, "s", "2.31 d"),
        (1500, "ms", "1.5 s"),
        (36, "h", "1.5 d"),
        (93_784, "dtdurations", "1 d 2 h"),
        (13.2e9, "bytes", "12.3 GiB"),
        (13.2e9, "decbytes", "13.2 GB"),
        (1234.4, "currencyUSD", "$1,234"),
        (12.5, "currencyUSD", "$12.50"),
        (0.00123, "currencyUSD", "$0.00123"),
        (-3.5, "currencyEUR", "-€3.50"),
        (1234, "currencyCHF", "CHF 1,234"),
        (2_345_678, "currencyEUR", "€2.35 M"),
        (1234, "short", "1.23 K"),
        (5_600_000, "short", "5.6 Mil"),
        (12.0, "short", "12"),
        (12_345.67, "none", "12,346"),
        (0.1 + 0.2, "", "0.3"),
        (-0.0, "none", "0"),
        (0.00002, "none", "2.00e-05"),
        (412, "watt", "412 W"),
        (41_200, "watt", "41.2 kW"),
        (61.5, "celsius", "61.5 °C"),
        (3.6e6, "joule", "3.6 MJ"),
        (1.41e9, "hertz", "1.41 GHz"),
        (12.25, "suffix:GPU-h", "12.2 GPU-h"),
        (8, "suffix: GPUs", "8 GPUs"),
        (8, "prefix:#", "#8"),
        (8, "GPUs", "8 GPUs"),
        (1200, "reqps", "1.2 K req/s"),
        (7, "ops", "7 ops/s"),
        (1, "bool_yes_no", "Yes"),
        (1_780_876_800_000, "dateTimeAsIso", "2026-06-08 00:00:00"),
        (1_780_876_800_000, "dateTimeFromNow", "2 h ago"),
        (1_780_891_200_000, "dateTimeFromNow", "in 2 h"),
        (math.nan, "s", "NaN"),
        (math.inf, "bytes", "+Inf"),
    ],
)
def test_a_value_reads_as_a_person_expects(value: float, unit: str, text: str) -> None:
    assert show(value, unit, Reading(now=1_780_884_000)) == text


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.5, "percentunit", 0, "50 %"),
        (2, "suffix:GPU-h", 1, "2.0 GPU-h"),
        (1_234_567.891, "currencyUSD", 2, "$1,234,567.89"),
        (-0.0001, "none", 2, "0.00"),
    ],
)
def test_decimals_asked_for_are_all_shown(value: float, unit: str, decimals: int, text: str) -> None:
    assert show(value, unit, Reading(decimals)) == text
