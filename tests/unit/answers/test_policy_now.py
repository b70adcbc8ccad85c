"""What a forecast reads of ResourceQuotas and PodDisruptionBudgets."""

from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import not_considered, read_budgets, read_policy
from gputally.accounting.policy.disruption_budgets import labels_in
from gputally.model.kube.kinds import Kind
from gputally.model.needs import Taken
from gputally.model.observation import ListedSeparately
from gputally.model.rules import Rules
from gputally.placement.disruption_budgets import NO_BUDGETS
from tests.core.manifests import NodeForm, PodForm, as_pod, us
from tests.core.policies import budget, quota
from tests.core.replay import Replay

WATCHING = Rules(watched=("poddisruptionbudgets", "resourcequotas"))
RUNNING = PodForm(name="a", node="n1", scheduled=10, started=11, labels={"app": "train"})
TAKEN = Taken((), 1)


def running(rules: Rules = WATCHING) -> Replay:
    replay = Replay(rules=rules)
    replay.see(NodeForm(), at=1)
    replay.see(RUNNING, at=20)
    return replay


def violated(replay: Replay) -> dict[str, str]:
    found = read_budgets(replay.fleet, replay.fleet.pods.records)
    return found.violated([("uid-a", TAKEN), ("unknown", TAKEN)])


def test_what_is_not_watched_or_not_listed_yet_is_named() -> None:
    off, on = read_policy(running(Rules()).fleet), read_policy(running().fleet)

    assert off.unknown == {
        each: f"they are not watched; start the aggregator with --watch={each}"
        for each in ("resourcequotas", "poddisruptionbudgets")
    }
    assert set(on.unknown.values()) == {"they are still being listed"}
    assert not_considered(on, NO_BUDGETS) == on.unknown


def test_a_budget_that_comes_after_its_pods_selects_them() -> None:
    replay = running()
    replay.relist_objects(Kind.DISRUPTION_BUDGETS, budget(0, labels={"app": "train"}), at=30)

    assert violated(replay) == {"uid-a": "ml/guard"}
    assert "poddisruptionbudgets" not in read_policy(replay.fleet).unknown


def test_a_deleted_budget_and_one_of_other_pods_select_none() -> None:
    replay = running()
    gone = budget(0, labels={"app": "train"})
    replay.relist_objects(Kind.DISRUPTION_BUDGETS, gone, budget(0, "other", labels={"app": "x"}), at=30)
    replay.lose_object(Kind.DISRUPTION_BUDGETS, gone, at=40)

    assert violated(replay) == {}


def test_labels_are_kept_only_of_bound_pods_and_only_if_budgets_are_watched() -> None:
    replay = running()
    replay.see(PodForm(name="waits"), at=21)
    labels = replay.fleet.policy.labels

    assert {uid: labels_in(each) for uid, each in labels.known.items()} == {"uid-a": {"app": "train"}}
    assert not running(Rules()).fleet.policy.labels.known
    replay.lose(RUNNING, at=30)
    assert not labels.known


def test_after_a_restart_labels_come_with_the_list_beside_the_watches() -> None:
    replay = running()
    replay.flush()
    replay.restart(at=30)
    replay.relist_objects(Kind.DISRUPTION_BUDGETS, budget(0, labels={"app": "train"}), at=31)
    before = read_budgets(replay.fleet, replay.fleet.pods.records)
    assert not before.violated([("uid-a", TAKEN)])
    assert before.is_partial
    assert "poddisruptionbudgets" in not_considered(read_policy(replay.fleet), before)

    replay.apply(ListedSeparately(objects=(as_pod(RUNNING),), begins=True, ends=True, at_us=us(32)))

    assert violated(replay) == {"uid-a": "ml/guard"}


def test_quotas_are_those_that_limit_pods_with_the_tenants_of_their_namespaces() -> None:
    replay = running()
    gpus = quota("gpus", {"nvidia.com/gpu": 4}, used={"nvidia.com/gpu": 1})
    claims = quota("claims", {"storage": "1Gi"})
    replay.relist_objects(Kind.QUOTAS, gpus, claims, at=30)
    policy = read_policy(replay.fleet)

    [found] = policy.quotas
    assert (found.name, found.hard, found.used) == (
        "gpus",
        (("requests.nvidia.com/gpu", 4),),
        (("requests.nvidia.com/gpu", 1),),
    )
    assert (policy.tenants, set(policy.unknown)) == ({"ml": "ml"}, {"poddisruptionbudgets"})
    replay.see_object(Kind.QUOTAS, replace(gpus, spec=claims.spec, status=claims.status), at=40)
    assert not read_policy(replay.fleet).quotas
