"""Parsers: convert text to a value, or raise ValueError with the problem and the fix."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, TypeVar

from gputally.accounting.terms.patterns import compiled, group_names, placeholders
from gputally.model.units import to_us

E = TypeVar("E", bound=StrEnum)
_FEW = 8
"""Up to this many options are listed in full; of more, only the closest is named."""
MAX_DECIMALS: Final = 12
"""Rates are exact to 10^-12."""
_MAX_AMOUNT = 1_000_000
_MAX_BUDGET = 10**12
_NUMBER = re.compile(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_DOMAIN = 253
_NO_LABEL = re.compile(r"[^A-Za-z0-9._*?\[\]!-]")
_TIME = re.compile(_DATE.pattern + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?")


def text(value: str) -> str:
    """A text that is not blank and has no spaces at its ends."""
    if not value.strip():
        raise ValueError("is blank; add a value, or remove the field")
    if value != value.strip():
        raise ValueError(f"{value!r} starts or ends with a space; remove it")
    return value


def a_list_of(options: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    *head, tail = options
    return f"{', '.join(head)} {last} {tail}" if head else tail


def nearest(value: str, options: Iterable[str]) -> str | None:
    """The option that is closest to `value`, if any is similar."""
    folded = {option.casefold(): option for option in options}
    matches = get_close_matches(value.casefold(), folded, n=1)
    return folded[matches[0]] if matches else None


def unknown(value: str, options: Collection[str], example: str = "") -> str:
    """The error text for a `value` that is not one of the `options`."""
    near = nearest(value, options)
    if len(options) <= _FEW:
        hint = f" (did you mean {near!r}?)" if near and len(options) > 1 else ""
        return f"unknown {value!r}; use {a_list_of(options, 'or')}{hint}"
    return f"unknown {value!r}; " + (f"did you mean {near!r}?" if near else f"use one such as {example}")


def choice(options: Collection[str], example: str = "") -> Callable[[str], str]:
    """A parser of one of the `options`."""

    def parse(value: str) -> str:
        if value not in options:
            raise ValueError(unknown(value, options, example))
        return value

    return parse


def member(kind: type[E]) -> Callable[[str], E]:
    """A parser of a member of the enumeration."""
    parse = choice([option.value for option in kind])
    return lambda value: kind(parse(value))


def flag(value: str) -> bool:
    """`true` or `false`; YAML's yes, no, on and off are rejected."""
    return choice(["true", "false"])(value) == "true"


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers from `minimum` to `maximum`."""

    def parse(value: str) -> int:
        if not _WHOLE.fullmatch(value) or not minimum <= int(value) <= maximum:
            raise ValueError(f"{value!r} is not a whole number from {minimum} to {maximum}")
        return int(value)

    return parse


def amount(value: str) -> Decimal:
    """An exact number from 0 to 1,000,000 with at most 12 decimals."""
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a number; use digits and a decimal point, such as 2.21")
    number = Decimal(value)
    if number < 0:
        raise ValueError(f"{value} is negative; use 0 or more")
    if number > _MAX_AMOUNT:
        raise ValueError(f"{value} is more than {_MAX_AMOUNT}; use whole currency units per hour")
    if decimals(number) > MAX_DECIMALS:
        raise ValueError(f"{value} has more than {MAX_DECIMALS} decimals; round it")
    return number


def budget_size(value: str) -> Decimal:
    """An exact number above 0, up to 10^12, with at most 12 decimals."""
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a number; use digits and a decimal point, such as 25000")
    number = Decimal(value)
    if not 0 < number <= _MAX_BUDGET:
        raise ValueError(f"{value} is not a budget; use more than 0, and at most {_MAX_BUDGET}")
    if decimals(number) > MAX_DECIMALS:
        raise ValueError(f"{value} has more than {MAX_DECIMALS} decimals; round it")
    return number


def decimals(number: Decimal) -> int:
    """How many digits after the point `number` needs; trailing zeros do not count."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def instant(value: str) -> int:
    """µs of a date (00:00 UTC) or of a time with its zone, since 1970."""
    if not (_DATE.fullmatch(value) or _TIME.fullmatch(value)):
        raise ValueError(f"{value!r} is not a date; use one such as 2026-07-20 or 2026-07-20T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is not a date: {error}") from None
    if _DATE.fullmatch(value):
        moment = moment.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; add Z for UTC, or an offset such as +02:00")
    if to_us(moment) <= 0:
        raise ValueError(f"{value!r} is before 1970; use a later date")
    return to_us(moment)


def day(value: str) -> str:
    """A date, kept as written."""
    if not _DATE.fullmatch(value):
        raise ValueError(f"{value!r} is not a date; use one such as 2026-07-20")
    instant(value)
    return value


def pattern(value: str) -> str:
    """An RE2 regular expression, which must match whole values."""
    try:
        compiled(value)
    except ValueError as error:
        raise ValueError(
            f"{value!r} is not an RE2 regular expression (github.com/google/re2/wiki/Syntax): {error}"
        ) from None
    return value


def tier_name(value: str) -> str:
    """The name of a tier, except reserved names."""
    return _unreserved(value, {"other": "the tiers beyond the limit", "unknown": "usage without a known tier"})


def tenant_name(value: str) -> str:
    """The name of a tenant, except the name reserved for tenants beyond the limit."""
    return _unreserved(value, {"other": "the tenants beyond the limit"})


def _unreserved(value: str, reserved: Mapping[str, str]) -> str:
    if value in reserved:
        raise ValueError(f"{value!r} is reserved for {reserved[value]}; choose another name")
    return text(value)


def label_key(value: str) -> str:
    """The key of a label or annotation.

    Source: k8s.io/apimachinery pkg/util/validation/validation.go, IsQualifiedName.
    """
    prefix, slash, name = value.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and (not _DOMAIN.fullmatch(prefix) or len(prefix) > _LONGEST_DOMAIN)):
        raise ValueError(f"{value!r} is not a label key; use one such as team or example.com/team")
    return value


def object_name(value: str) -> str:
    """The name of a Kubernetes object, such as a namespace or a scheduler."""
    if not _DOMAIN.fullmatch(value) or len(value) > _LONGEST_DOMAIN:
        raise ValueError(f"{value!r} is not a valid object name; use lower-case letters, digits, `-` and `.`")
    return value


def label_glob(value: str) -> str:
    """A glob that a label value can match. Source: the same file, IsValidLabelValue."""
    if wrong := sorted(set(_NO_LABEL.findall(value))):
        raise ValueError(
            f"{value!r} matches no label: label values cannot contain {a_list_of(map(repr, wrong), 'or')}; "
            "use the value of the label"
        )
    return text(value)


def template(*names: str, pattern: str | None) -> Callable[[str], str]:
    """A parser of templates that may contain each `{name}` and the groups of `pattern`."""
    groups = group_names(pattern) if pattern is not None else ()
    known = tuple(f"{{{option}}}" for option in (*names, *groups))

    def parse(value: str) -> str:
        for placeholder in placeholders(text(value)):
            if f"{{{placeholder}}}" not in known:
                raise ValueError(f"{{{placeholder}}} is not a known placeholder; use {a_list_of(known, 'or')}")
        if value.count("{") + value.count("}") != 2 * len(placeholders(value)):
            raise ValueError(f"{value!r} has an unbalanced brace; use {a_list_of(known, 'or')}")
        return value

    return parse
