"""PodGroups that nobody needs, which anyone may create."""

import pytest

from gputally.accounting.groups.gang_size import DeclaredGroups
from gputally.frameworks.pod_group_kind import Declared
from gputally.model.kube.kinds import Kind, Limit
from tests.core.gang_pods import group

KIND = Kind.COSCHEDULING_GROUPS


def test_the_groups_of_a_namespace_are_limited_until_some_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KIND, "limit", Limit(3, 50))
    declared = dict[str, Declared | None]()
    groups = DeclaredGroups(KIND, lambda name, found, _: declared.update({name: found}), lambda *_: None)
    for number in range(5):
        groups.seen(group(KIND, f"g{number}", 2), at_us=1)
    groups.seen(group(KIND, "other", 2, namespace="vision"), at_us=1)
    assert [name.split("/", 1)[1] for name in declared] == ["ml/g0", "ml/g1", "ml/g2", "vision/other"]

    groups.seen(group(KIND, "g1", 4), at_us=2)
    groups.gone("uid-g4", at_us=3)
    groups.gone("uid-g0", at_us=3)
    groups.seen(group(KIND, "g3", 2), at_us=4)

    least = {name.rpartition("/")[2]: found and found.pods for name, found in declared.items()}
    assert least == {"g0": None, "g1": 4, "g2": 2, "g3": 2, "other": 2}


def test_deleted_groups_leave_nothing_behind() -> None:
    groups = DeclaredGroups(KIND, lambda *_: None, lambda *_: None)
    fresh = vars(DeclaredGroups(KIND, lambda *_: None, lambda *_: None))
    for number in range(5):
        groups.seen(group(KIND, f"g{number}", 2), at_us=1)
    groups.listed({"uid-g0"}, at_us=2)
    groups.gone("uid-g0", at_us=3)

    sizes = {name: len(value) for name, value in vars(groups).items() if isinstance(value, dict)}
    assert sizes == {name: 0 for name, value in fresh.items() if isinstance(value, dict)}
