"""The names of units that Grafana knows.

Source: grafana/grafana packages/grafana-data/src/valueFormats, categories.ts and valueFormats.ts.
"""

import re
from typing import Final

LISTED: Final = (
    *("bool", "bool_on_off", "bool_yes_no", "bytes", "celsius", "cps", "d", "dateTimeAsIso", "dateTimeAsLocal"),
    *(
        "dateTimeFromNow",
        "decbytes",
        "dtdurations",
        "h",
        "hertz",
        "joule",
        "kwatth",
        "locale",
        "m",
        "ms",
        "none",
        "ops",
    ),
    *("percent", "percentunit", "s", "short", "string", "watt", "watth"),
    *("currencyBRL", "currencyCHF", "currencyCZK", "currencyDKK", "currencyEUR", "currencyGBP", "currencyINR"),
    *("currencyJPY", "currencyKRW", "currencyNOK", "currencyPLN", "currencySEK", "currencyUSD", "currencyZAR"),
)
"""Those of its list that can serve here. A name it does not know it shows as a word behind the number."""
_CUSTOM: Final = re.compile(r"(count|currency|prefix|si|suffix|time):.+")
"""Units that one makes up."""
_CURRENCY: Final = re.compile(r"currency(:.+|[A-Z]{3})")


def is_unit(name: str) -> bool:
    """Whether Grafana shows it as a unit."""
    return name in LISTED or bool(_CUSTOM.fullmatch(name))


def is_currency(name: str) -> bool:
    """Whether it shows money."""
    return bool(_CURRENCY.fullmatch(name))
