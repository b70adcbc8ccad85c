"""The recommended Alertmanager configuration, with the test's receiver as its target."""

from pathlib import Path
from typing import Final

from tests.prometheus.receiver import Receiver

ROOT: Final = Path(__file__).parents[2]
ROUTES: Final = ROOT / "examples" / "alertmanager.yaml"
RULES: Final = ROOT / "alerts" / "generated" / "rules"
PAGER_WAIT_S: Final = 10
TICKETS_WAIT_S: Final = 30
"""The group_wait of those routes."""
GROUP_INTERVAL_S: Final = 20


def to_receiver(receiver: Receiver) -> dict[str, str]:
    """Replacements in the configuration. The group_interval of five minutes is too long for a test."""
    return {"http://localhost:9095": receiver.url, "group_interval: 5m": f"group_interval: {GROUP_INTERVAL_S}s"}


def at_once(receiver: Receiver) -> dict[str, str]:
    """The same replacements, with a short group_wait."""
    waits = {f"group_wait: {seconds}s": "group_wait: 1s" for seconds in (TICKETS_WAIT_S, PAGER_WAIT_S)}
    return to_receiver(receiver) | waits
