"""Names in the series of kube-state-metrics, which replace characters that Prometheus does not allow.

Source: kubernetes/kube-state-metrics internal/store/utils.go, SanitizeLabelName and toSnakeCase.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from gputally.model.rules import Rules
from gputally.shares.schemes import BUILT_IN

Metric = Mapping[str, str]
"""The labels of a series, with its name as `__name__`."""

_INVALID: Final = re.compile(r"[^a-zA-Z0-9_]")
_CAPITAL: Final = re.compile(r"([a-z0-9])([A-Z])")
_MIG: Final = re.compile(r"nvidia_com_mig_(?P<cores>\d+c_)?(?P<compute>\d+g)_(?P<memory>\d+gb)(?P<more>(_[a-z]+)*)")
_PROMETHEUS: Final = re.compile(r"[\\\"]")


def field(metric: Metric, name: str) -> str:
    """A label that kube-state-metrics wrote; "" without it.

    Without `honor_labels`, Prometheus renames those that also the target has, such as `namespace`.
    """
    return metric.get(f"exported_{name}") or metric.get(name, "")


def key_name(prefix: str, key: str) -> str:
    """The label of a series that has the Kubernetes label (`label`) or annotation (`annotation`) with this key."""
    name = _CAPITAL.sub(r"\1_\2", _INVALID.sub("_", key)).lower()
    return f"{prefix}_{name}"


def kubernetes_labels(metric: Metric, keys: Collection[str], *, prefix: str = "label") -> dict[str, str]:
    """The Kubernetes labels or annotations with these `keys` that the series has a value for."""
    return {key: value for key in keys if (value := metric.get(key_name(prefix, key)))}


def quoted(text: str) -> str:
    """A text as a string of PromQL."""
    return '"' + _PROMETHEUS.sub(r"\\\g<0>", text).replace("\n", r"\n") + '"'


def any_of(texts: Collection[str]) -> str:
    """A regular expression for these texts, as a string of PromQL."""
    return quoted("|".join(map(re.escape, sorted(texts))).replace("\\-", "-"))


@lru_cache(maxsize=8)
def gpu_pattern(rules: Rules) -> str:
    """A regular expression for the sanitised names of all GPU resources."""
    return "|".join(f"{_sanitised(literal)}{'.*' if star else ''}" for literal, star in _patterns(rules))


@lru_cache(maxsize=1024)
def resource_named(sanitised: str, rules: Rules) -> str:
    """The name of a GPU resource; "" for other resources.

    What a wildcard of a rule stands for keeps its underscores, except for MIG profiles, whose form is known.
    """
    if mig := _MIG.fullmatch(sanitised):
        more = mig["more"].replace("_", ".")
        return f"nvidia.com/mig-{(mig['cores'] or '').replace('_', '.')}{mig['compute']}.{mig['memory']}{more}"
    for literal, star in _patterns(rules):
        start = _sanitised(literal)
        if sanitised == start or (star and sanitised.startswith(start)):
            return literal + sanitised[len(start) :]
    return ""


@lru_cache(maxsize=8)
def _patterns(rules: Rules) -> tuple[tuple[str, bool], ...]:
    """The text before the first wildcard of each rule, and whether one follows; the longest first."""
    known = (*rules.resources, *(BUILT_IN if rules.built_in_resources else ()))
    parts = {re.split(r"[*?\[]", rule.pattern, maxsplit=1)[0]: rule.pattern for rule in known}
    found = [(literal, literal != pattern) for literal, pattern in parts.items()]
    return tuple(sorted(found, key=lambda each: (each[1], -len(each[0]))))


def _sanitised(text: str) -> str:
    return _INVALID.sub("_", text)
