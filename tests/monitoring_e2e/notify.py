"""How alerts reach people: the routes we recommend, with our own receiver at their ends."""

from pathlib import Path
from typing import Final

from tests.prometheus.receiver import Receiver

ROOT: Final = Path(__file__).parents[2]
ROUTES: Final = ROOT / "examples" / "alertmanager.yaml"
RULES: Final = ROOT / "alerts" / "generated" / "rules"
PAGER_WAIT_S: Final = 10
TICKETS_WAIT_S: Final = 30
"""How long the first notification of a group waits for more, by those routes."""
GROUP_INTERVAL_S: Final = 20


def to_receiver(receiver: Receiver) -> dict[str, str]:
    """What to replace in them. News of a group would come five minutes after the last, which is too long for a test."""
    return {"http://localhost:9095": receiver.url, "group_interval: 5m": f"group_interval: {GROUP_INTERVAL_S}s"}


def at_once(receiver: Receiver) -> dict[str, str]:
    """The same, without waiting for more of a group."""
    waits = {f"group_wait: {seconds}s": "group_wait: 1s" for seconds in (TICKETS_WAIT_S, PAGER_WAIT_S)}
    return to_receiver(receiver) | waits
