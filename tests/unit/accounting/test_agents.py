"""Which pods are agents, and where each answers."""

from typing import Any

import pytest

from gputally.accounting.watched.agents import Agents
from gputally.kube.watched import is_watched
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import Pod
from gputally.model.observation import Deleted, Upserted
from gputally.model.rules import AgentMarks, Rules
from gputally.model.usage import AgentPod
from tests.core.manifests import PodForm, as_pod, us
from tests.core.replay import Replay

LABELS = {"app.kubernetes.io/name": "gputally", "app.kubernetes.io/component": "agent", "more": "of it"}


def agent(name: str = "agent-1", *, ip: str = "10.0.0.1", **form: Any) -> Pod:  # noqa: ANN401 - any field of a form
    fields: dict[str, Any] = {
        "namespace": "gputally",
        "node": "n1",
        "gpus": 0,
        "labels": LABELS,
        "phase": "Running",
        "created": 1,
        "scheduled": 2,
    }
    manifest = PodForm(name=name, uid=name, **fields | form).manifest()
    return as_pod({**manifest, "status": {**manifest["status"], "podIP": ip}})


def shown(agents: Agents) -> dict[str, str]:
    return {node: pod.address for node, pod in agents.on_nodes().items()}


@pytest.mark.parametrize(
    ("pod", "watched"),
    [
        (agent(), True),
        (agent(labels={"app.kubernetes.io/name": "gputally"}), False),
        (agent(labels={}), False),
        (agent(namespace="other"), False),
        (agent(labels={}, gpus=1), True),
    ],
)
def test_pods_that_ask_for_gpus_and_agents_are_watched_and_no_others(pod: Pod, *, watched: bool) -> None:
    assert is_watched(pod, Rules()) is watched


def test_without_labels_to_look_for_no_pod_is_an_agent() -> None:
    assert not is_watched(agent(), Rules(agents=AgentMarks(labels=())))


def test_agents_may_be_in_any_namespace() -> None:
    assert is_watched(agent(namespace="other"), Rules(agents=AgentMarks(namespace="")))


def test_an_agent_that_runs_is_known_by_its_node() -> None:
    agents = Agents(Rules())
    agents.seen(agent(), at_us=us(5))

    assert agents.on_nodes() == {"n1": AgentPod(uid="agent-1", node="n1", address="10.0.0.1", created_us=us(1))}
    assert (agents.is_on("n1"), agents.is_on("n2")) == (True, False)


def test_a_node_has_none_when_its_agent_has_gone() -> None:
    agents = Agents(Rules())
    was_there = agents.is_on("n1")
    agents.seen(agent(), at_us=us(5))
    is_there = agents.is_on("n1")
    agents.gone("agent-1", at_us=us(9))

    assert (was_there, is_there, agents.is_on("n1")) == (False, True, False)


@pytest.mark.parametrize("form", [{"phase": "Pending"}, {"phase": "Failed"}, {"deleted": 4}, {"ip": ""}, {"node": ""}])
def test_one_that_does_not_run_or_is_to_go_is_not_asked(form: dict[str, Any]) -> None:
    agents = Agents(Rules())
    agents.seen(agent(), at_us=us(5))
    agents.seen(agent(**form), at_us=us(6))

    assert shown(agents) == {}


def test_while_one_replaces_another_the_new_one_counts() -> None:
    agents = Agents(Rules())
    agents.seen(agent("new", ip="10.0.0.2", created=7), at_us=us(8))
    agents.seen(agent("old", created=3), at_us=us(8))
    assert shown(agents) == {"n1": "10.0.0.2"}

    agents.gone("new", at_us=us(9))
    assert shown(agents) == {"n1": "10.0.0.1"}


def test_what_changed_is_told_once_for_the_ledger() -> None:
    agents = Agents(Rules())
    for _ in range(2):
        agents.seen(agent(), at_us=us(5))
        agents.seen(agent("other", node="n2"), at_us=us(5))
    assert agents.drain().keys() == {"agent-1", "other"}
    agents.seen(agent(), at_us=us(6))
    assert agents.drain() == {}

    agents.listed({"agent-1"}, at_us=us(9))
    assert agents.drain() == {"other": None}


def test_agents_are_still_known_after_a_restart_whose_watch_goes_on() -> None:
    replay = Replay()
    replay.apply(Upserted(kind=Kind.PODS, object=agent(), at_us=us(5), since_us=us(5)))
    replay.flush()
    replay.restart()
    assert shown(replay.fleet.agents) == {"n1": "10.0.0.1"}

    replay.apply(Deleted(kind=Kind.PODS, object=agent(), at_us=us(9), since_us=us(9)))
    replay.flush()
    replay.restart()
    assert shown(replay.fleet.agents) == {}


def test_an_agent_that_a_listing_lacks_is_gone() -> None:
    replay = Replay()
    replay.apply(Upserted(kind=Kind.PODS, object=agent(), at_us=us(5), since_us=us(5)))
    replay.relist(Kind.PODS, at=9, since=8)

    assert shown(replay.fleet.agents) == {}
