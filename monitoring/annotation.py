"""Annotations: marks in all graphs of a dashboard, and those that several dashboards show."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from monitoring.panel import BLUE, DATASOURCE, GREY, RED


class Annotation(Struct, frozen=True, kw_only=True):
    """Marks in all graphs of a board where `expression` has series; `text` names each by its labels."""

    name: str
    expression: str
    text: str
    color: str
    shown: bool = True

    def json(self) -> Mapping[str, Any]:
        """An annotation query of Grafana; the reader can switch it on and off."""
        return {
            "name": self.name,
            "datasource": DATASOURCE,
            "enable": self.shown,
            "expr": self.expression,
            "iconColor": self.color,
            "step": "5m",
            "titleFormat": self.name,
            "textFormat": self.text,
        }


_BOOK: Final = 'max by (cluster, name, digest) (gputally_price_book_info{cluster=~"$cluster"}'
PREEMPTIONS: Final = Annotation(
    name="Preemptions",
    expression='sum by (victim_tier) (round(increase(gputally_preemptions_total{cluster=~"$cluster"}[5m]))) > 0',
    text="pods of tier {{victim_tier}} were preempted",
    color=RED,
    shown=False,
)
PRICE_CHANGES: Final = Annotation(
    name="Price changes",
    expression=f"{_BOOK}) unless {_BOOK} offset 5m)",
    text="price book {{name}}, digest {{digest}}",
    color=BLUE,
)
RESTARTS: Final = Annotation(
    name="Aggregator restarts",
    expression='changes(process_start_time_seconds[5m]) and on (instance) gputally_build_info{cluster=~"$cluster"} > 0',
    text="the aggregator {{instance}} restarted",
    color=GREY,
)
ALL: Final = (PREEMPTIONS, PRICE_CHANGES, RESTARTS)
