from random import Random
from statistics import mean

import pytest

from gputally_sim.instants import HOUR_US
from gputally_sim.node.utilisation import FULL, UTILISATION, Curve, curve_of, drawn, parse
from tests.unit.sim.world import pod, seconds

MINUTE_US = seconds(60)


def test_one_number_holds_for_ever() -> None:
    assert parse("0.8") == Curve(((0, 800_000),))
    assert parse("0.8").at(HOUR_US) == 800_000


def test_steps_hold_until_the_next() -> None:
    curve = parse("0s:0.2,10m:0.9")

    assert [curve.at(us) for us in (0, 10 * MINUTE_US - 1, 10 * MINUTE_US, HOUR_US)] == [200_000, 200_000] + [
        900_000
    ] * 2


def test_before_its_first_step_it_is_0() -> None:
    assert parse("10m:0.9").at(MINUTE_US) == 0


@pytest.mark.parametrize("text", ["", "much", "1.1", "-0.1", "nan", "0s:", "soon:0.5", "0.5,"])
def test_what_is_no_curve_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_it_integrates_over_its_steps() -> None:
    assert parse("0s:0.2,10m:0.9").integral(15 * MINUTE_US) == 10 * MINUTE_US * 200_000 + 5 * MINUTE_US * 900_000


def test_a_period_begins_anew() -> None:
    curve = Curve(((0, 100), (10, 300)), period_us=30)

    assert [curve.at(us) for us in (29, 30, 39, 40)] == [300, 100, 100, 300]
    assert list(curve.cuts(0, 65)) == [10, 30, 40, 60]
    assert list(curve.cuts(10, 40)) == [30]
    assert curve.integral(60) == 2 * curve.integral(30) == 2 * (10 * 100 + 20 * 300)


def test_an_annotation_decides_and_one_that_cannot_be_read_does_not() -> None:
    said, unsaid, wrong = ({**pod("a"), "metadata": metadata(text)} for text in ("0.5", "", "x"))

    assert curve_of(said, 1) == parse("0.5")
    assert curve_of(wrong, 1) == curve_of(unsaid, 1)


def metadata(text: str) -> dict[str, object]:
    return {"name": "a", "uid": "u1", "annotations": {UTILISATION: text}}


def test_the_seed_and_the_pod_decide_otherwise() -> None:
    first, other = ({"metadata": {"uid": uid}} for uid in ("u1", "u2"))

    assert curve_of(first, 1) == curve_of(first, 1)
    assert len({curve_of(first, 1), curve_of(first, 2), curve_of(other, 1)}) == 3


def test_most_pods_are_well_used_and_some_hardly_at_all() -> None:
    levels = [level("training", seed) for seed in range(300)]

    assert 20 < sum(each < 0.06 for each in levels) < 60
    assert sum(each > 0.5 for each in levels) > 100
    assert max(levels) <= 1
    assert mean(level("notebook", seed) for seed in range(300)) < 0.15


def level(kind: str, seed: int) -> float:
    curve = drawn(Random(seed), kind=kind)
    assert curve.period_us
    return curve.integral(curve.period_us) / curve.period_us / FULL
