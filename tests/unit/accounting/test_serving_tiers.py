"""Which tiers serve user traffic, by default and by configuration."""

import pytest

from gputally.accounting.fleet.snapshot import Serving
from gputally.accounting.terms.tier import PENDING_US, STARTING_US, TierLimits, serves
from gputally.model.rules import Limits, Rules
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay


@pytest.mark.parametrize(
    ("tier", "serving"),
    [
        ("prod-serving", True),
        ("inference-critical", True),
        ("llm.inference", True),
        ("gpu_serving", True),
        ("serving", True),
        ("real-time", True),
        ("online-eu", True),
        ("gold", False),
        ("training-high", False),
        ("observing", False),
        ("preserving", False),
        ("inferences", False),
        ("none", False),
        ("other", False),
    ],
)
def test_without_a_configuration_a_tier_serves_if_a_word_of_its_name_says_so(tier: str, *, serving: bool) -> None:
    assert serves(tier, Rules()) is serving


def test_a_list_replaces_the_default_and_its_patterns_match_whole_names() -> None:
    rules = Rules(serving=("gold", "prod-.*"))

    assert [tier for tier in ("gold", "gold-2", "prod-a", "non-prod-a", "serving") if serves(tier, rules)] == [
        "gold",
        "prod-a",
    ]


DEFAULT_LIMITS = TierLimits(PENDING_US, STARTING_US)


def test_tiers_of_running_and_of_pending_pods_are_listed() -> None:
    replay = Replay()
    running = PodForm(name="a", tier="prod-serving", node="n1", scheduled=10, started=12)
    replay.see(NodeForm(), running, PodForm(name="b", tier="batch", created=5), at=13)

    assert replay.scrape(14).serving == Serving(
        tiers={"prod-serving": True, "batch": False},
        time_limits=dict.fromkeys(("prod-serving", "batch"), DEFAULT_LIMITS),
        expected=True,
        unmatched=0,
    )


def test_patterns_that_match_no_tier_are_counted_until_one_exists() -> None:
    replay = Replay(rules=Rules(serving=("gold", "platinum")))
    replay.see(PodForm(tier="gold", created=5), at=6)
    assert replay.scrape(7).serving.unmatched == 1

    replay.see(PodForm(name="b", tier="platinum", created=7), at=8)
    assert replay.scrape(9).serving.unmatched == 0


def test_a_cluster_that_only_trains_expects_no_serving_tier() -> None:
    replay = Replay(rules=Rules(serving=()))
    replay.see(PodForm(tier="prod-serving", created=5), at=6)

    assert replay.scrape(7).serving == Serving(
        tiers={"prod-serving": False},
        time_limits={"prod-serving": DEFAULT_LIMITS},
        expected=False,
        unmatched=0,
    )


def test_tiers_beyond_the_limit_do_not_serve() -> None:
    replay = Replay(rules=Rules(known_tiers=("gold",), limits=Limits(tiers=1)))
    replay.see(PodForm(tier="prod-serving", created=5), at=6)

    assert replay.scrape(7).serving.tiers == {"gold": False, "other": False}
