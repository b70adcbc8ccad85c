"""Label selectors, and which labels they select."""

from collections.abc import Mapping

from gputally.model.objects.camel import Camel


class SelectorRequirement(Camel, frozen=True):
    """A requirement on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class Selector(Camel, frozen=True):
    """meta/v1 LabelSelector; an empty one selects everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector matches; an empty one matches everything, none matches nothing.

    Source: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector.
    """
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return equal and all(_holds(each, labels) for each in selector.match_expressions or ())


def characters_of(selector: Selector | None) -> int:
    """How long its keys and values are together, with one more for each: what it takes to keep it."""
    if selector is None:
        return 0
    texts = [text for pair in (selector.match_labels or {}).items() for text in pair]
    for each in selector.match_expressions or ():
        texts += (each.key, each.operator, *(each.values or ()))
    return sum(map(len, texts)) + len(texts)


def _holds(required: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = required.values or ()
    match required.operator:
        case "In":
            return labels.get(required.key) in values
        case "NotIn":
            return labels.get(required.key) not in values
        case "Exists":
            return required.key in labels
        case _:
            return required.key not in labels
