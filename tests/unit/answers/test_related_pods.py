"""Pods that are related to a waiting one."""

from gputally.answers.helps import Relations
from gputally.answers.pending_list import pending_list
from gputally.answers.viewer import ALL
from gputally.questions.pending import Pending
from tests.unit.accounting.test_partial_gangs import gang
from tests.unit.answers.test_partial_gangs import pending, two_gangs


def test_pods_of_one_gang_share_one_set_of_related_pods_as_there_may_be_thousands() -> None:
    now = pending(*gang("a", bound=6, pending=2))

    first, second = map(Relations(now, now.waiting).of, now.waiting)

    assert first is second
    assert first.stuck == {f"uid-a-{number}" for number in range(6)}
    assert first.siblings == first.stuck


def test_pods_of_gangs_that_wait_for_each_other_have_each_other_as_rivals() -> None:
    now = two_gangs()
    relations = Relations(now, now.waiting)

    rivals = {each.record.name[0]: relations.of(each).rival for each in now.waiting}

    assert {name: rival and rival.name for name, rival in rivals.items()} == {"a": "b", "b": "a"}


def test_all_jobs_with_the_same_request_are_told_what_would_help_however_many_they_are() -> None:
    jobs = [gang(f"job{number}", bound=1, pending=1) for number in range(60)]
    now = pending(*(each for job in jobs for each in job), gpus=60)

    page = pending_list(now, Pending(limit=100, helps=True), ALL)

    assert [each.pod for each in page.pods if not each.helps] == []
