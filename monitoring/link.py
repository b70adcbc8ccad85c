"""Ways from one dashboard to another that take along what the reader has chosen."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from monitoring.uid import uid

_KEPT: Final = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"


class Link(Struct, frozen=True):
    """To the dashboard `board`, same cluster, same time; its `variables` are set from labels of what is clicked."""

    title: str
    board: str
    variables: Mapping[str, str] = {}
    kept: tuple[str, ...] = ()
    """Choices that both dashboards have, and that stay as they are."""

    def of_series(self) -> Mapping[str, Any]:
        """On a series, which has the labels itself."""
        return self._to({name: f"${{__field.labels.{label}}}" for name, label in self.variables.items()})

    def of_cells(self, heads: Mapping[str, str]) -> Mapping[str, Any]:
        """On a column of a table, whose other columns have these heads by label."""
        return self._to({name: f'${{__data.fields["{heads[label]}"]}}' for name, label in self.variables.items()})

    def head(self, heads: Mapping[str, str]) -> str:
        """The column to click: that of the first label, or the first column."""
        return heads[next(iter(self.variables.values()), next(iter(heads)))]

    def _to(self, values: Mapping[str, str]) -> Mapping[str, Any]:
        kept = "".join(f"&${{{name}:queryparam}}" for name in self.kept)
        chosen = kept + "".join(f"&var-{name}={value}" for name, value in values.items())
        return {"title": self.title, "url": f"/d/{uid(self.board)}?{_KEPT}{chosen}", "targetBlank": False}
