"""What pods need and take, as the scheduler counts it; pods with equal needs share one object."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final
from weakref import WeakKeyDictionary, ref

from msgspec.structs import replace

from gputally.errors import MalformedObject
from gputally.model.kube.placeable_pods import PlaceableAffinity, PlaceableContainer, PlaceablePod, PlaceableSpec
from gputally.model.kube.pods import NEVER, Container, NodeSelectorTerm, PodMeta, PodTemplate, Resources, Toleration
from gputally.model.needs import SHARES, TOO_MANY, Amounts, Needs, Taken
from gputally.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, MOST, PODS
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.placement.resource_requests import amount_of, counted_spec, requested
from gputally.shares.request import peak_of
from gputally.shares.schemes import SCHEMES, describes, rule_of

_DEFAULT_SCHEDULER: Final = "default-scheduler"
_MAX_RESOURCES: Final = 64
"""More resources than any node offers, so a pod that requests more never runs."""
_MAX_RULES: Final = 256
"""More tolerations, or requirements on nodes, than anyone writes; comparing them costs time."""
_MAX_TEXT: Final = 8192
"""More characters in these than anyone writes: some hundred names of nodes. Keeping them costs memory."""
MAX_RULES_OF_TEMPLATE: Final = 32
MAX_TEXT_OF_TEMPLATE: Final = 1024
"""The limits of a template and the names of its resources: nothing but its size limits these, and many may be kept."""
_MAX_NAMES: Final = 64
"""More gates or claims than anyone writes; some of them say enough."""
_MAX_SHARED: Final = 16
"""Pods that request more resources than this are too rare to share what they request."""
_MAX_SHARED_TEXT: Final = 512
"""Characters of the names of the resources of such a pod."""
_SAME: Final[WeakKeyDictionary[Needs, ref[Needs]]] = WeakKeyDictionary()
_IMPERSONAL: Final[WeakKeyDictionary[Needs, Needs]] = WeakKeyDictionary()


def needs_of(pod: PlaceablePod, rules: Rules) -> Needs:
    """What decides where `pod` may run. Raises: MalformedObject for an invalid quantity."""
    spec = pod.spec
    amounts = tuple([(name, amount) for name, amount in amounts_of(pod) if not describes(name, rules)])
    terms = _terms(spec)
    is_much = _is_too_much(spec)
    return Needs(
        namespace=pod.metadata.namespace,
        amounts=amounts,
        gpus=tuple([name for name, _ in amounts if rule_of(name, rules)]),
        priority=spec.priority or 0,
        may_preempt=spec.preemption_policy != NEVER,
        class_name=spec.priority_class_name,
        scheduler=spec.scheduler_name or _DEFAULT_SCHEDULER,
        node_selector=() if is_much else tuple(sorted((spec.node_selector or {}).items())),
        node_terms=None if is_much else terms,
        tolerations=() if is_much else _distinct(spec.tolerations or ()),
        gates=tuple(sorted({gate.name for gate in spec.scheduling_gates or ()})[:_MAX_NAMES]),
        claims=tuple(sorted({claim.name for claim in spec.resource_claims or ()})[:_MAX_NAMES]),
        unmodelled=tuple(_unmodelled(pod, rules)),
    )


def selection_of(template: PodTemplate, rules: Rules) -> Needs | None:
    """What decides on which nodes a pod of the template could run; None if it is more than is kept of a template.

    Raises: MalformedObject for an invalid quantity.
    """
    spec = template.spec
    whole = PlaceableSpec(
        node_selector=spec.node_selector,
        affinity=PlaceableAffinity(node_affinity=spec.affinity.node_affinity) if spec.affinity else None,
        init_containers=_placeable(spec.init_containers or ()),
        containers=_placeable(spec.containers),
        tolerations=spec.tolerations,
    )
    parts, tolerations = list(_parts(whole)), whole.tolerations or ()
    names = {name for each in (*spec.containers, *(spec.init_containers or ())) for name in requested(each.resources)}
    text = _length(whole, parts) + sum(map(len, names))
    if len(parts) + len(tolerations) > MAX_RULES_OF_TEMPLATE or text > MAX_TEXT_OF_TEMPLATE:
        return None
    return needs_of(PlaceablePod(metadata=PodMeta(), spec=whole), rules)


def _placeable(containers: Iterable[Container]) -> tuple[PlaceableContainer, ...]:
    return tuple(
        PlaceableContainer(resources=each.resources, restart_policy=each.restart_policy) for each in containers
    )


def taken_of(pod: PlaceablePod, *, is_serving: bool = False) -> Taken:
    """What the bound `pod` takes from its node. Raises: MalformedObject for an invalid quantity."""
    started = pod.status.start_time
    return Taken(
        amounts_of(PlaceablePod(metadata=pod.metadata, spec=counted_spec(pod))),
        pod.spec.priority or 0,
        is_serving=is_serving,
        started_us=round(started.timestamp() * US_PER_SECOND) if started else None,
    )


def amounts_of(pod: PlaceablePod) -> Amounts:
    """The effective requests of all resources, by the spec. Raises: MalformedObject for an invalid quantity.

    Requests of the pod as a whole replace those of its containers; the overhead comes on top.

    Source: k8s.io/component-helpers resource/helpers.go, PodRequests.
    """
    spec = pod.spec
    init_containers = spec.init_containers or ()
    try:
        peak = dict(peak_of(init_containers, [_requests(each) for each in (*init_containers, *spec.containers)]))
        peak |= {name: amount for name, amount in _amounts(spec.resources).items() if _is_pod_level(name)}
        for name, quantity in (spec.overhead or {}).items():
            peak[name] = peak.get(name, 0) + amount_of(name, quantity)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None
    amounts = tuple(_bounded(peak | {PODS: 1}))
    is_rare = len(amounts) > _MAX_SHARED or sum([len(name) for name, _ in amounts]) > _MAX_SHARED_TEXT
    return amounts if is_rare else _same(amounts)


def _requests(container: Container) -> dict[str, int]:
    return _amounts(container.resources)


def _amounts(resources: Resources | None) -> dict[str, int]:
    """A limit without a request counts as one."""
    return {name: amount_of(name, quantity) for name, quantity in requested(resources).items()}


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _bounded(peak: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """At most _MAX_RESOURCES, sorted; those that every node offers are never left out."""
    own = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) if peak.get(name)]
    others = sorted(name for name, amount in peak.items() if amount and name not in own)
    for name in sorted((*own, *islice(others, _MAX_RESOURCES - len(own)))):
        yield name, min(peak[name], MOST)


@lru_cache(maxsize=4096)
def _same(amounts: Amounts) -> Amounts:
    """Equal amounts are one object."""
    return amounts


def _terms(spec: PlaceableSpec) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = spec.affinity and spec.affinity.node_affinity
    return affinity.required.node_selector_terms if affinity and affinity.required else None


def _is_too_much(spec: PlaceableSpec) -> bool:
    """Whether the rules about nodes are too many, or too long."""
    parts = list(_parts(spec))
    return len(parts) > _MAX_RULES or len(spec.tolerations or ()) > _MAX_RULES or _length(spec, parts) > _MAX_TEXT


def _parts(spec: PlaceableSpec) -> Iterator[str]:
    """What a node is compared with: each term, requirement and value."""
    for key, value in (spec.node_selector or {}).items():
        yield f"{key}={value}"
    for term in _terms(spec) or ():
        yield ""
        for each in (*(term.match_expressions or ()), *(term.match_fields or ())):
            yield f"{each.key}{each.operator}"
            yield from each.values or ()


def _length(spec: PlaceableSpec, parts: Iterable[str]) -> int:
    texts = [*parts, *(f"{each.key}{each.operator}{each.value}{each.effect}" for each in spec.tolerations or ())]
    return sum(map(len, texts))


def _distinct(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    return tuple(dict.fromkeys(tolerations))


def _unmodelled(pod: PlaceablePod, rules: Rules) -> Iterator[str]:
    """What only the scheduler can judge."""
    spec = pod.spec
    if any(scheme.may_request(pod, rules) for scheme in SCHEMES) or any(
        describes(name, rules) for name, _ in amounts_of(pod)
    ):
        yield SHARES
    if any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes or ()):
        yield "volumes"
    if any(each.when_unsatisfiable != "ScheduleAnyway" for each in spec.topology_spread_constraints or ()):
        yield "topology spread"
    if (affinity := spec.affinity) and any(
        each and each.required for each in (affinity.pod_affinity, affinity.pod_anti_affinity)
    ):
        yield "pod affinity"
    if any(port.host_port for each in spec.containers for port in each.ports or ()):
        yield "host ports"
    if _is_too_much(spec):
        yield TOO_MANY


def same(needs: Needs) -> Needs:
    """The first object that equals `needs`, of those that somebody keeps."""
    if (known := _SAME.get(needs)) and (found := known()):
        return found
    if (base := impersonal(needs)) is not needs:
        needs = replace(base, namespace=needs.namespace, class_name=needs.class_name)  # shares its parts
        _IMPERSONAL[needs] = base
    _SAME[needs] = ref(needs)
    return needs


def impersonal(needs: Needs) -> Needs:
    """Without the names that decide nothing about nodes, so that pods of all namespaces and classes share a verdict."""
    if not (needs.namespace or needs.class_name):
        return needs
    return _IMPERSONAL.get(needs) or same(replace(needs, namespace="", class_name=""))


def kept() -> int:
    """How many different needs are kept."""
    return len(_SAME)
