"""The Jobs that lack pods."""

from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from gputally.accounting.base.limits import KEPT, Beyond, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.uncreated.lacking import Key, Lacking, lacking_of_job
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.workloads import Job
from gputally.model.rules import Rules


class Lacks(Protocol):
    """Called with what a workload lacks, None if nothing."""

    def __call__(self, key: Key, lacking: Lacking | None, *, at_us: int) -> None:
        """It was observed at `at_us`."""


class UncreatedJobs(StatePart[Struct]):
    """Passes on what each Job lacks. `listed_us` is when a list of Jobs was first complete, None before."""

    name = "uncreated_job"
    kinds = (Kind.JOBS,)

    def __init__(self, lacks: Lacks, rules: Rules) -> None:
        self.listed_us: int | None = None
        self._lacks = lacks
        self._rules = rules
        self._keys: dict[str, Key] = {}
        """Of Jobs that lack pods, by UID."""
        self._limit = NamespaceLimit(KEPT[Kind.JOBS], lambda _, uid: self.gone(uid, at_us=self._now_us))
        self._now_us = 0

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Job):
            meta, lacking = found.metadata, lacking_of_job(found, self._rules, at_us=at_us)
            key = meta.namespace, meta.uid
            self._now_us = at_us
            if lacking and self._limit.put(*key):
                self._keys[meta.uid] = key
            else:
                lacking = None
                self._limit.remove(*key)
                self._keys.pop(meta.uid, None)
            self._lacks(key, lacking, at_us=at_us)

    @property
    def beyond_limits(self) -> Beyond:
        """See `StatePart.beyond_limits`."""
        return self._limit.beyond

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        if key := self._keys.pop(uid, None):
            self._limit.remove(*key)
            self._lacks(key, None, at_us=at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        self.listed_us = at_us if self.listed_us is None else self.listed_us
        for uid in self._keys.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
