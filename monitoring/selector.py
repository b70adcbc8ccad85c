"""Series as dashboards ask for them: narrowed by each of the reader's choices that they can be narrowed by."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gputally.catalog.metric import Metric
from gputally.catalog.reference import GROUPS

METRICS: Final[Mapping[str, Metric[Any]]] = {metric.name: metric for group in GROUPS.values() for metric in group}
TARGET: Final = ("cluster",)
"""Labels that come from where a series was scraped, and that every series may have."""
SEVERAL: Final = ("_bucket", "_sum", "_count")
"""What a histogram is exposed as."""


def declared(name: str) -> Metric[Any]:
    """The metric that exposes series of that name. Raises: KeyError when there is none."""
    return METRICS.get(name) or METRICS[next((name.removesuffix(end) for end in SEVERAL if name.endswith(end)), name)]


def labels_of(name: str) -> tuple[str, ...]:
    """The labels that gputally itself gives series of that name; none where they are not of its catalog."""
    if not name.startswith("gputally_"):
        return ()
    return declared(name).labels + (("le",) if name.endswith("_bucket") else ())


def grown_in_all(counter: str, *by: str) -> str:
    """What the series of a selector grew by in the time shown, in all or by labels."""
    split = f" by ({', '.join(by)}) " if by else ""
    return f"sum{split}(increase({counter}[$__range]))"


def grown_per_bar(counter: str) -> str:
    """What the series of a selector grew by during a bar of `counts`.

    The window begins one scrape before the bar. One of `$__interval` would lose what happens between the last scrape of
    a bar and the first of the next one, such as what is due at the full hour.
    """
    return f"rate({counter}[$__rate_interval]) * $__interval_ms / 1000"


class Selectors:
    """Selectors for a board with these `variables`, which are names of labels."""

    def __init__(self, *variables: str) -> None:
        self._variables = variables

    def __call__(self, name: str, *more: str) -> str:
        """`name{tier=~"$tier", ...}` with a matcher for each variable that the metric has a label for, and `more`."""
        known = (*TARGET, "instance", *labels_of(name))
        chosen = [f'{label}=~"${label}"' for label in self._variables if label in known]
        return f"{name}{{{', '.join([*chosen, *more])}}}"

    def now(self, name: str, *more: str) -> str:
        """A gauge, once: a replaced exporter's last sample stays visible for minutes beside that of its successor."""
        return f"max by ({', '.join((*TARGET, *labels_of(name)))}) ({self(name, *more)})"

    def numbered(self, name: str, *more: str) -> str:
        """Series of GPUs that answer, with the `minor` of /dev/nvidia0: nobody knows UUIDs.

        Those of MIG devices also have their `profile`, and the beginning of their UUID as `slice`.
        """
        if "device" not in labels_of(name):
            return self._joined(self(name, *more), on=("gpu",), take=("minor",))
        return _with_slice(self._joined(self(name, *more), on=("gpu", "device"), take=("minor", "profile")))

    def numbered_rate(self, name: str) -> str:
        """The same for the growth per second of a counter by device."""
        return _with_slice(self._joined(self.rate(name), on=("gpu", "device"), take=("minor", "profile")))

    def _joined(self, series: str, *, on: Sequence[str], take: Sequence[str]) -> str:
        keys, taken = ", ".join((*TARGET, "instance", *on)), ", ".join(take)
        known = f"max by ({keys}, {taken}) ({self('gputally_gpu_info')})"
        return f"{series} * on ({keys}) group_left ({taken}) {known}"

    def busy(self, *by: str, whole: bool = False) -> str:
        """The share of the measured time in which GPUs worked for who holds them, now or over the time shown."""
        return f"{self.worked(*by, whole=whole)} / {self._growth('measured', by, whole=whole)}"

    def idle(self, *by: str) -> str:
        """GPUs worth of the measured time in which they did not."""
        return f"{self._growth('measured', by)} - {self.worked(*by)}"

    def worked(self, *by: str, whole: bool = False) -> str:
        """GPU time used, without what goes beyond the share held: that makes up for nobody's idleness."""
        return f"({self._growth('used', by, whole=whole)} - {self._growth('burst', by, whole=whole)})"

    def _growth(self, what: str, by: Sequence[str], *, whole: bool = False) -> str:
        total = f"sum by ({', '.join(by)})" if by else "sum"
        return f"{total} ({(self.grown if whole else self.rate)(f'gputally_{what}_gpu_seconds_total')})"

    def rate(self, name: str, *more: str) -> str:
        """What a counter grows by per second."""
        return f"rate({self(name, *more)}[$__rate_interval])"

    def grown(self, name: str, *more: str) -> str:
        """What a counter grew by in the time shown."""
        return f"increase({self(name, *more)}[$__range])"


def _with_slice(expression: str) -> str:
    return f'label_replace({expression}, "slice", "$1", "device", "(MIG-.{{8}}).*")'
