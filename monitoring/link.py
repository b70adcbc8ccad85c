"""Links from dashboards that take along what the reader has chosen: to other dashboards, and to the aggregator."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from monitoring.uid import uid

TIME_RANGE: Final = "${__from:date:iso}/${__to:date:iso}"
"""The period that is shown, as a `window` of the aggregator."""
_KEPT: Final = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"


class AnyLink(Struct, frozen=True):
    """A link whose parameters are set from labels of what is clicked."""

    title: str

    def of_series(self) -> Mapping[str, Any]:
        """On a series, which has the labels itself."""
        return self._to({name: f"${{__field.labels.{label}}}" for name, label in self._labels().items()})

    def of_cells(self, heads: Mapping[str, str]) -> Mapping[str, Any]:
        """On a column of a table, whose other columns have these heads by label."""
        return self._to({name: f'${{__data.fields["{heads[label]}"]}}' for name, label in self._labels().items()})

    def head(self, heads: Mapping[str, str]) -> str:
        """The column to click: that of the first label, or the first column."""
        return heads[next(iter(self._labels().values()), next(iter(heads)))]

    def _labels(self) -> Mapping[str, str]:
        """By parameter."""
        raise NotImplementedError

    def _to(self, values: Mapping[str, str]) -> Mapping[str, Any]:
        """As Grafana reads it, with these values of the parameters."""
        raise NotImplementedError


class Link(AnyLink, frozen=True):
    """To the dashboard `board`, same cluster, same time; its `variables` are set from labels."""

    board: str
    variables: Mapping[str, str] = {}
    kept: tuple[str, ...] = ()
    """Choices that both dashboards have, and that stay as they are."""

    def _labels(self) -> Mapping[str, str]:
        return self.variables

    def _to(self, values: Mapping[str, str]) -> Mapping[str, Any]:
        kept = "".join(f"&${{{name}:queryparam}}" for name in self.kept)
        chosen = kept + "".join(f"&var-{name}={value}" for name, value in values.items())
        return {"title": self.title, "url": f"/d/{uid(self.board)}?{_KEPT}{chosen}", "targetBlank": False}


class AggregatorLink(AnyLink, frozen=True):
    """To a page of the aggregator, which has names that no metric has, in a new tab.

    `fixed` are parameters with their values, `labels` those that are set from labels.
    """

    path: str
    fixed: Mapping[str, str]
    labels: Mapping[str, str] = {}

    def _labels(self) -> Mapping[str, str]:
        return self.labels

    def _to(self, values: Mapping[str, str]) -> Mapping[str, Any]:
        parameters = "&".join(f"{name}={value}" for name, value in {**self.fixed, **values}.items())
        return {"title": self.title, "url": f"<aggregator.url>{self.path}?{parameters}", "targetBlank": True}
