"""What one namespace creates beyond the limits: it is not kept, it is counted, and others lose nothing."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import DOCUMENTS, StatePart
from gputally.accounting.disruptions.kueue_evictions import QueueEvictions
from gputally.accounting.disruptions.kueue_preemptors import QueuePreemptors
from gputally.accounting.uncreated.waits import UncreatedPodsBook
from gputally.aggregator.accountant import Accountant
from gputally.kube.watched import ON_REQUEST, resources
from gputally.model.health import Health, LedgerHealth
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import NO_LIMIT, OPTIONAL_RESOURCES, Kind, Limit
from gputally.model.kube.meta import Object
from gputally.model.kube.policy import PodDisruptionBudget, ResourceQuota
from gputally.model.rules import Rules, TenantRule, TenantSource
from tests.core.gang_pods import group
from tests.core.kueue import PYTORCH, evicted, kueue_workload, unreserved
from tests.core.manifests import Json, PodForm, preempted_event, us
from tests.core.policies import budget, quota
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.core.replay import Replay

SMALL = Limit(3, 6)
LIMITED = [kind for kind in Kind if kind.limit != NO_LIMIT]
WATCHED = Rules(watched=OPTIONAL_RESOURCES)


def named(found: Object, name: str, namespace: str) -> Object:
    """The object with that name, in that namespace, and with a UID of its own."""
    meta = structs.replace(
        found.metadata, name=name, namespace=namespace, uid=f"uid-of-{namespace}-{len(name)}{name[-2:]}"
    )
    return structs.replace(found, metadata=meta)


def workload(name: str) -> Object:
    return kueue_workload(unreserved(10), evicted(9), owner=PYTORCH | {"name": name, "uid": f"uid-{name}"})


def preempted(name: str) -> Object:
    victim, by = (PodForm(name=each, uid=f"uid-{each}", namespace="") for each in (f"victim-{name}", name))
    return msgspec.convert(preempted_event(victim, by=by), Event)


def job(name: str) -> Object:
    return parallel_job(name, conditions=("Suspended",), queue="q", suspend=True)


OBJECTS: dict[Kind, Callable[[str], Object]] = {
    Kind.JOBS: job,
    Kind.DISRUPTION_BUDGETS: lambda _: budget(0, labels={"app": "x"}),
    Kind.QUOTAS: lambda name: quota(name, {"nvidia.com/gpu": "8"}),
    Kind.KUEUE_WORKLOADS: workload,
    Kind.VOLCANO_GROUPS: lambda name: group(Kind.VOLCANO_GROUPS, name, 2),
    Kind.COSCHEDULING_GROUPS: lambda name: group(Kind.COSCHEDULING_GROUPS, name, 2),
    Kind.CORE_GROUPS: lambda name: group(Kind.CORE_GROUPS, name, 2),
}


def created(kind: Kind, name: str, namespace: str) -> Object:
    """An object of a kind, whose name is kept if it is."""
    if kind is Kind.EVENTS:
        victim = PodForm(name=f"of-{namespace}", uid=f"v-{name}", namespace=namespace)
        by = PodForm(name=name, uid=f"by-{name}", namespace=namespace)
        event = msgspec.convert(preempted_event(victim, by=by), Event, strict=False)
        return named(event, "event", namespace)
    if kind is Kind.FAILED_CREATES:
        return failed_create(exceeded(), name=name, namespace=namespace)
    return named(OBJECTS[kind](name), name, namespace)


def texts(found: object, known: set[int]) -> Iterator[str]:
    """All texts that can be reached from an object."""
    if isinstance(found, str):
        yield found
    elif id(found) not in known:
        known.add(id(found))
        for each in inside(found):
            yield from texts(each, known)


def inside(found: object) -> Iterator[object]:
    if isinstance(found, dict):
        yield from found.keys()
        yield from found.values()
    elif isinstance(found, Struct):
        yield from (getattr(found, name) for name in found.__struct_fields__)
    elif isinstance(found, list | tuple | set | frozenset | deque):
        yield from found
    elif not callable(found):
        yield from getattr(found, "__dict__", {}).values()


def kept_names(parts: tuple[StatePart[Any], ...], namespace: str) -> set[str]:
    found = {name for text in texts(parts, set()) for name in re.findall(rf"{namespace}-n\d+", text)}
    return {name for name in found if not name.startswith("uid")}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in LIMITED:
        monkeypatch.setattr(kind, "limit", SMALL)
    for part in (QueueEvictions, QueuePreemptors):
        monkeypatch.setattr(part, "document_limit", SMALL)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", LIMITED)
def test_beyond_its_limit_a_kind_is_counted_and_no_other_namespace_loses_anything(kind: Kind) -> None:
    replay = Replay(rules=WATCHED)
    names = [(f"{space}-n{number}", space) for number in range(20) for space in ("evil", "worse")]
    for name, namespace in [*names[:30], ("honest-n1", "honest"), *names[30:]]:
        replay.see_object(kind, created(kind, name, namespace), at=61)
    replay.fleet.advance(us(62))
    replay.fleet.drain()
    parts = tuple(replay.fleet._readers.of_kind[kind])

    assert len(kept_names(parts, "honest")) == 1
    for part in parts:
        assert len(kept_names((part,), "evil") | kept_names((part,), "worse")) <= 5, part.name
    assert kept_names(parts, "evil")
    assert kept_names(parts, "worse")
    assert replay.fleet.limit_overflow()[kind].count >= 30
    assert replay.fleet.limit_overflow()[kind].namespace in ("evil", "worse")


@pytest.mark.usefixtures("small")
def test_the_log_names_each_namespace_of_which_not_all_are_kept_once(caplog: pytest.LogCaptureFixture) -> None:
    replay = Replay(rules=WATCHED)
    accountant = Accountant(replay.fleet, Health(version="1", python="3", watches=(), ledger=LedgerHealth()))
    for namespace in ("evil", "worse", "evil"):
        for number in range(6):
            replay.see_object(Kind.QUOTAS, created(Kind.QUOTAS, f"{namespace}-n{number}", namespace), at=10)
        accountant.publish(now_us=us(11), differences={})

    assert [each.getMessage() for each in caplog.records] == [
        "a limit is reached: not all resourcequotas of the namespace evil are kept",
        "a limit is reached: not all resourcequotas of the namespace worse are kept",
    ]


@pytest.mark.usefixtures("small")
def test_a_kept_object_that_changes_stays_and_a_deleted_one_makes_room() -> None:
    replay = Replay(rules=WATCHED)
    budgets = [created(Kind.DISRUPTION_BUDGETS, f"ml-n{number}", "ml") for number in range(5)]
    for each in (*budgets, *budgets[:3]):
        replay.see_object(Kind.DISRUPTION_BUDGETS, each, at=10)
    replay.lose_object(Kind.DISRUPTION_BUDGETS, budgets[0], at=20)
    replay.see_object(Kind.DISRUPTION_BUDGETS, budgets[4], at=21)
    replay.fleet.advance(us(700))  # deleted ones are kept for ten minutes
    replay.see_object(Kind.DISRUPTION_BUDGETS, budgets[4], at=701)

    assert kept_names(tuple(replay.fleet._readers.of_kind[Kind.DISRUPTION_BUDGETS]), "ml") == {
        "ml-n1",
        "ml-n2",
        "ml-n4",
    }


def stored(replay: Replay, name: str) -> dict[str, Any]:
    documents = replay.memory.documents[name].items()
    return {key: msgspec.json.decode(body, type=DOCUMENTS[name]) for key, body in documents}


STORED_KINDS = {
    "job": Kind.JOBS,
    "queue_eviction": Kind.KUEUE_WORKLOADS,
    "possible_preemptor": Kind.KUEUE_WORKLOADS,
    "uncreated_waits": Kind.KUEUE_WORKLOADS,
}


@pytest.mark.parametrize("name", STORED_KINDS)
def test_documents_of_a_version_without_limits_are_limited_by_the_next_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(rules=WATCHED)
    kind = STORED_KINDS[name]
    for number in range(20):
        replay.see_object(kind, created(kind, f"evil-n{number}", "evil"), at=61)
    replay.see_object(kind, created(kind, "honest-n1", "honest"), at=61)
    replay.scrape(62)
    assert len(stored(replay, name)) == 21

    monkeypatch.setattr(Kind.JOBS, "limit", SMALL)
    for part in (QueueEvictions, QueuePreemptors, UncreatedPodsBook):
        monkeypatch.setattr(part, "document_limit", SMALL)
    replay.restart()
    replay.scrape(63)

    assert 4 <= len(stored(replay, name)) <= 6
    assert any("honest" in key or each.namespace == "honest" for key, each in stored(replay, name).items())


def test_every_watched_kind_and_every_stored_document_has_a_limit_or_says_that_it_has_none() -> None:
    watched = {each.kind for each in (*resources(WATCHED), *ON_REQUEST)}

    assert watched == set(Kind)
    limits = [*(kind.limit for kind in Kind), *(part.document_limit for part in Replay(rules=WATCHED).fleet.parts)]
    assert all(limit == NO_LIMIT or limit.in_all for limit in limits)


MEGABYTE = 10**6
TERM: Json = {"scopeName": "PriorityClass", "operator": "In", "values": ["x" * 100] * 10_000}


def template(labels: Json, selector: Json, class_name: str) -> Json:
    spec = parallel_job("any").spec.template.spec
    manifest = msgspec.to_builtins(spec) | {"nodeSelector": selector, "priorityClassName": class_name}
    return {"metadata": {"labels": labels}, "spec": manifest}


def huge(kind: Kind) -> Object:
    """An object of the size that an API server accepts, in one of the texts that it does not limit."""
    text, many = "x" * MEGABYTE, [f"{number:09}" for number in range(MEGABYTE // 12)]
    if kind is Kind.DISRUPTION_BUDGETS:
        matching: Json = {"matchExpressions": [{"key": "app", "operator": "In", "values": many}]}
        meta = {"name": "ml-n1", "namespace": "ml", "uid": "u", "labels": {"a": text}}
        return msgspec.convert({"metadata": meta, "spec": {"selector": matching}}, PodDisruptionBudget)
    if kind is Kind.QUOTAS:
        hard = {"requests.nvidia.com/gpu": "8"}
        meta = {"name": "ml-n1", "namespace": "ml", "uid": "u"}
        found: Json = {"metadata": meta, "spec": {"hard": hard, "scopeSelector": {"matchExpressions": [TERM]}}}
        return msgspec.convert(found, ResourceQuota)
    labels = {"team": text, "training.kubeflow.org/job-name": text}
    selector = {"nvidia.com/gpu.product": text}
    sets = [{"name": f"s{n}", "count": 1, "template": template(labels, selector, text)} for n in range(20)]
    return kueue_workload(unreserved(10, message=text), owner=PYTORCH, podSets=sets, queueName=text)


@pytest.mark.parametrize("kind", [Kind.DISRUPTION_BUDGETS, Kind.QUOTAS, Kind.KUEUE_WORKLOADS])
def test_of_huge_objects_only_short_texts_are_kept(kind: Kind) -> None:
    rules = Rules(watched=OPTIONAL_RESOURCES, tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"),))
    replay = Replay(rules=rules)
    replay.see_object(kind, huge(kind), at=61)
    replay.fleet.advance(us(62))

    found = list(texts(tuple(replay.fleet._readers.of_kind[kind]), set()))
    assert max(map(len, found)) <= 2048
    assert sum(map(len, found)) <= 40_000
    if kind is not Kind.KUEUE_WORKLOADS:
        assert replay.fleet.limit_overflow()[kind] == LimitOverflow(1, "ml")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans()), max_size=60))
def test_no_namespace_loses_a_key_to_one_with_more(steps: list[tuple[str, int, bool]]) -> None:
    dropped: list[tuple[str, str]] = []
    limit = NamespaceLimit(Limit(4, 7), lambda *key: dropped.append(key))
    kept: dict[str, list[str]] = {each: [] for each in "abc"}
    for namespace, number, is_removed in steps:
        key, own = str(number), kept[namespace]
        before, overflow = {name: len(keys) for name, keys in kept.items()}, limit.overflow
        dropped.clear()
        if is_removed:
            limit.remove(namespace, key)
            kept[namespace] = [each for each in own if each != key]
            continue
        is_kept = limit.put(namespace, key)
        for loser, lost in dropped:
            assert before[loser] > before[namespace] + 1
            assert kept[loser].pop() == lost, "not its latest"
        if key not in own and is_kept:
            own.append(key)
        assert is_kept == (key in own)
        assert limit.overflow.count == overflow.count + (bool(dropped) or not is_kept)
        if limit.overflow != overflow:
            assert limit.overflow.namespace == (dropped[0][0] if dropped else namespace)
        assert len(own) <= 4
        assert sum(map(len, kept.values())) <= 7
        assert is_kept or len(own) == 4 or sum(before.values()) == 7


def test_what_has_no_limit_does_not_count_as_one_of_none() -> None:
    assert Limit(5, 10).most == 10
    with pytest.raises(ValueError, match="no limit"):
        assert Limit(5).most
