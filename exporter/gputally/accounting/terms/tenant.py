"""The tenant of a pod, from its labels and its namespace."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from gputally.accounting.terms.patterns import expanded, matched
from gputally.model.kube.meta import Labels, Namespace
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules, TenantRule, TenantSource

UNASSIGNED = "unassigned"
"""The tenant of pods that no rule matches."""
_MOST = 10_000
"""Cache size: pods share entries, unless rules read labels that are different for each pod."""


def tenant_of(
    namespace: str,
    *,
    pod_labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    namespace_annotations: Mapping[str, str],
    rules: Rules,
) -> str:
    """The tenant from the first matching rule; `unassigned` without one.

    A rule does not match a missing or empty value, nor if it would return an empty tenant.
    """
    places: dict[TenantSource, Mapping[str, str]] = {
        TenantSource.POD_LABEL: pod_labels,
        TenantSource.NAMESPACE_LABEL: namespace_labels,
        TenantSource.NAMESPACE_ANNOTATION: namespace_annotations,
        TenantSource.NAMESPACE: {"": namespace},
    }
    tenants = (_tenant(rule, places[rule.source].get(rule.key, "")) for rule in rules.tenants)
    return next(filter(None, tenants), UNASSIGNED)


def relevant_labels(rules: Rules, source: TenantSource = TenantSource.POD_LABEL) -> frozenset[str]:
    """The keys of labels, or annotations, of `source` that the rules read; no others are stored."""
    return frozenset(rule.key for rule in rules.tenants if rule.source is source)


def _tenant(rule: TenantRule, value: str) -> str:
    groups = matched(rule.pattern, value) if rule.pattern is not None else {}
    return expanded(rule.tenant, {**groups, "value": value}) if value and groups is not None else ""


class NamespaceMarks(Struct, frozen=True):
    """Labels and annotations of a namespace that tenant rules read."""

    uid: str = ""
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)


_NO_MARKS = NamespaceMarks()


class Namespaces:
    """The existing namespaces; `known_marks` by name."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._label_keys = relevant_labels(rules)
        self._own_labels = relevant_labels(rules, TenantSource.NAMESPACE_LABEL)
        self._own_annotations = relevant_labels(rules, TenantSource.NAMESPACE_ANNOTATION)
        self.known_marks: dict[str, NamespaceMarks] = {}
        self.changes = 0
        """Grows with each change."""
        self._tenants: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}

    def seen(self, namespace: Namespace) -> bool:
        """Update a namespace; returns whether tenants of its pods may have changed."""
        meta = namespace.metadata
        labels, annotations = _only(meta.labels, self._own_labels), _only(meta.annotations, self._own_annotations)
        marks = NamespaceMarks(meta.uid, labels, annotations)
        if self.known_marks.get(meta.name) == marks:
            return False
        self.known_marks[meta.name] = marks
        self._changed()
        return True

    def gone(self, uid: str) -> None:
        """Remove a namespace: a new one of the same name may belong to another tenant."""
        self.known_marks = {name: marks for name, marks in self.known_marks.items() if marks.uid != uid}
        self._changed()

    def known(self) -> set[str]:
        """UIDs of the namespaces that exist."""
        return {marks.uid for marks in self.known_marks.values()}

    def tenant(self, record: PodRecord) -> str:
        """The pod's tenant, from its present labels and its namespace."""
        labels = tuple(pair for pair in record.labels if pair[0] in self._label_keys) if self._label_keys else ()
        return self._tenants.get((record.namespace, labels)) or self.tenant_in(record.namespace, labels)

    def tenant_in(self, namespace: str, labels: tuple[tuple[str, str], ...] = ()) -> str:
        """The tenant of a pod with these relevant labels."""
        key = (namespace, labels)
        found = self._tenants.get(key)
        if found is None:
            if len(self._tenants) >= _MOST:
                self._tenants.clear()
            found = self._tenants[key] = self._tenant(*key)
        return found

    def _changed(self) -> None:
        self.changes += 1
        self._tenants.clear()

    def _tenant(self, namespace: str, labels: tuple[tuple[str, str], ...]) -> str:
        marks = self.known_marks.get(namespace, _NO_MARKS)
        return tenant_of(
            namespace,
            pod_labels=dict(labels),
            namespace_labels=marks.labels,
            namespace_annotations=marks.annotations,
            rules=self._rules,
        )


def _only(values: Labels | None, keys: AbstractSet[str]) -> Labels:
    return {key: values[key] for key in keys & values.keys()} if values else {}
