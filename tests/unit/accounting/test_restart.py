"""A new process goes on from what the last one accounted, and accounts again only what differs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from gputally.accounting.fleet import fleet
from gputally.accounting.pods.pods import Pods
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark
from gputally.model.rules import Rules, TierRule
from tests.core.manifests import namespace, us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay

PODS = 5
GOLD = Rules(digest="a")
SILVER = Rules(digest="b", tiers=(TierRule(tier="silver"),))


def running(*namespaces: str) -> Replay:
    """Some pods on a node, in each of these namespaces and in `ml`, told up to now."""
    replay = Replay(rules=GOLD)
    replay.see(replace(NODE, gpus=2 * PODS), at=1)
    for name in namespaces:
        replay.see_namespace(namespace(name), at=2)
    pods = [replace(RUNNING, namespace=each, name=f"{each}-{i}") for each in ("ml", *namespaces) for i in range(PODS)]
    replay.see(*pods, at=13)
    replay.apply(Bookmark(kind=Kind.PODS, version="9", at_us=us(20), since_us=us(20)))
    replay.flush()
    return replay


@contextmanager
def nothing_reconciled() -> Iterator[None]:
    """No pod is accounted."""
    with patch.object(Pods, "_derive", side_effect=AssertionError("reconciled")):
        yield


def test_a_restart_under_the_same_rules_settles_no_pod() -> None:
    replay = running()

    with nothing_reconciled():
        replay.restart()

    changes = replay.fleet.drain()
    assert (changes.revisions, changes.pods) == ({}, {})
    assert len(replay.fleet.pods.records) == PODS


def test_under_other_rules_pods_are_classified_anew_from_the_restart_on() -> None:
    replay = running()
    replay.restart(rules=SILVER)

    assert replay.gpu_seconds(30) == {
        ("gold", "ml", "A100", "starting"): 2 * PODS,
        ("gold", "ml", "A100", "running"): 8 * PODS,
        ("silver", "ml", "A100", "running"): 10 * PODS,
    }


def test_rules_that_were_applied_to_some_pods_alone_are_taken_back() -> None:
    replay = running("research")
    replay.restart(rules=SILVER)  # which tells of `ml`, and ends before it tells of `research`
    replay.scrape(25)
    replay.restart(rules=GOLD)
    replay.see_namespace(namespace("research"), at=25)

    assert {tier for tier, *_ in replay.gpu_seconds(30)} == {"gold", "silver"}
    assert replay.gpu_seconds(30)["silver", "ml", "A100", "running"] == 5 * PODS
    assert {record.terms[-1].tier for record in replay.fleet.pods.records.values()} == {"gold"}


def test_rules_that_one_process_did_not_apply_to_all_pods_the_next_one_does() -> None:
    replay = running("research")
    for at in (25, 30):
        replay.restart(rules=SILVER)
        replay.scrape(at)
    replay.see_namespace(namespace("research"), at=30)
    assert {record.terms[-1].tier for record in replay.fleet.pods.records.values()} == {"silver"}
    replay.flush()

    with nothing_reconciled():
        replay.restart()
        replay.see_namespace(namespace("research"), at=30)


def test_a_version_that_accounts_otherwise_looks_at_all_pods_again() -> None:
    replay = running()

    with (
        patch.object(fleet, "POD_READING", "other"),
        nothing_reconciled(),
        pytest.raises(AssertionError, match="reconciled"),
    ):
        replay.restart()


def test_a_namespace_whose_marks_change_moves_its_pods_alone() -> None:
    replay = running()
    replay.restart()
    with nothing_reconciled():
        replay.see_namespace(namespace("other", labels={"team": "red"}), at=25)
        replay.see_namespace(namespace("ml", labels={"team": "red"}), at=26)  # of which no rule makes a tenant
