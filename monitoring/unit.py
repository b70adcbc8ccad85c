"""Units as Grafana shows them, each with the dimension that a query must have to be shown in it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Unit(NamedTuple):
    """Grafana's name for it, what it measures, and how many decimals are worth reading."""

    grafana: str
    dimension: str
    decimals: int | None = None

    @property
    def overrides(self) -> list[Mapping[str, Any]]:
        """What the name of a series decides: money is shown in the currency that its legend names."""
        return _CURRENCIES if self.dimension.startswith("money") else []


def _currency(code: str) -> Mapping[str, Any]:
    matcher = {"id": "byRegexp", "options": rf"/\b{code}\b/"}
    return {"matcher": matcher, "properties": [{"id": "unit", "value": f"currency{code}"}]}


_CURRENCIES: Final = [_currency(code) for code in ("USD", "EUR", "GBP", "JPY", "INR", "KRW", "CHF")]

GPUS: Final = Unit("suffix: GPUs", "gpus")
GPU_SECONDS: Final = Unit("suffix: GPU-s", "gpu_seconds", 1)
GPU_HOURS: Final = Unit("suffix: GPU-h", "gpu_hours", 1)
MONEY: Final = Unit("short", "money", 2)
MONEY_PER_HOUR: Final = Unit("short", "money/hour", 2)
RATIO: Final = Unit("percentunit", "ratio", 1)
SECONDS: Final = Unit("s", "seconds")
MOMENT: Final = Unit("dateTimeAsIso", "milliseconds since 1970")
COUNT: Final = Unit("short", "count", 0)
EXACT: Final = Unit("none", "count", 0)
"""A number to compare, of which each digit counts: not 10 K."""
PER_HOUR: Final = Unit("suffix: / h", "count/hour", 1)
PER_SECOND: Final = Unit("cps", "count/second")
BYTES: Final = Unit("bytes", "bytes")
WATTS: Final = Unit("watt", "watts")
ENERGY: Final = Unit("watth", "watt_hours")
CELSIUS: Final = Unit("celsius", "celsius", 0)
HERTZ: Final = Unit("hertz", "hertz")
STATE: Final = Unit("none", "state", 0)
"""0 and 1, shown as words."""
