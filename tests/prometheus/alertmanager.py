"""A real Alertmanager."""

from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from hack.build import ALERTMANAGER
from tests.cluster.manifests import Json
from tests.prometheus.daemon import Daemon, eventually


class AlertmanagerServer(Daemon):
    """Runs by a copy of the file `configuration` in which the `replacements` are made; data and log lie in `scratch`.

    Relative paths in the file are relative to `scratch`.
    """

    def __init__(self, scratch: Path, configuration: Path, *, replacements: Mapping[str, str] | None = None) -> None:
        self.file = scratch / "alertmanager.yml"
        arguments = [
            f"--config.file={self.file}",
            f"--storage.path={scratch / 'alertmanager'}",
            "--cluster.listen-address=",  # alone
            "--log.level=warn",
        ]
        super().__init__(ALERTMANAGER, arguments, log=scratch / "alertmanager.log")
        scratch.mkdir(parents=True, exist_ok=True)
        self.file.write_text(replaced(configuration.read_text(), replacements or {}))

    async def alerts(self) -> list[Json]:
        """Those that have not ended, each with labels, receivers and status."""
        return await self.get("alerts")

    async def groups(self) -> list[Json]:
        """The alerts by route: each group has labels, a receiver and alerts."""
        return await self.get("alerts/groups")

    async def inhibited(self) -> list[Json]:
        """The alerts that are held back because of others."""
        return [alert for alert in await self.alerts() if alert["status"]["inhibitedBy"]]

    async def until(self, holds: Callable[[list[Json]], object], *, within: float = 30) -> list[Json]:
        """Its alerts, once they are as awaited. Raises: TimeoutError with the last ones."""
        return await eventually(self.alerts, holds, within=within, what=f"the alerts of {self.url}")

    async def send(self, *alerts: Mapping[str, str]) -> None:
        """Fire alerts with these labels, as Prometheus would; they end by themselves after its `resolve_timeout`."""
        body = [{"labels": dict(labels)} for labels in alerts]
        async with (
            aiohttp.ClientSession(raise_for_status=True) as session,
            session.post(f"{self.url}/api/v2/alerts", json=body),
        ):
            pass  # the status says all

    async def get(self, path: str) -> list[Json]:
        """The list at `/api/v2/PATH`. Source: Alertmanager api/v2/openapi.yaml."""
        async with (
            aiohttp.ClientSession(raise_for_status=True) as session,
            session.get(f"{self.url}/api/v2/{path}") as response,
        ):
            found: list[Json] = await response.json()
            return found


def replaced(text: str, replacements: Mapping[str, str]) -> str:
    """All of them made in turn. Raises: ValueError for one that finds nothing, for it is out of date."""
    for old, new in replacements.items():
        if old not in text:
            raise ValueError(f"there is no {old!r} to replace")
        text = text.replace(old, new)
    return text
