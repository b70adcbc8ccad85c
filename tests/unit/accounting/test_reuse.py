"""The next pod on the node of a victim, also when the end of the victim is corrected late."""

from dataclasses import replace

from tests.core.manifests import PodForm, us
from tests.unit.accounting.test_disruptions import ended, found, marked, observed

STOPPED = ended(marked("PreemptionByScheduler"), 55)
NEXT = PodForm(name="next", uid="next", tier="high", node="n1", created=56, scheduled=57, started=58)


def test_the_reuse_by_a_pod_that_is_long_gone_stays_when_the_end_is_corrected() -> None:
    replay = observed(STOPPED)
    replay.see(NEXT, at=61)
    replay.lose(replace(NEXT, deleted=62, grace=0, version=2), at=62)
    replay.scrape(62 + 600)

    replay.see(replace(STOPPED, finished=56, version=4), at=700)

    assert (each := found(replay)) is not None
    assert (each.released_us, each.reused_us) == (us(56), us(57))


def test_a_reuse_before_the_corrected_end_is_none() -> None:
    replay = observed(STOPPED)
    replay.see(NEXT, at=61)

    replay.see(replace(STOPPED, finished=60, version=4), at=62)

    assert (each := found(replay)) is not None
    assert (each.released_us, each.reused_us) == (us(60), None)
