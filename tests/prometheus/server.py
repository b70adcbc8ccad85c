"""A real Prometheus."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hack.build import PROMETHEUS
from hack.prometheus import Answer, Prometheus
from tests.cluster.manifests import Json
from tests.prometheus.daemon import Daemon, ReloadRefused, eventually


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A prometheus.yml: `scrape_configs` are as there, `alertmanager` is a URL, or empty for none."""

    scrape_configs: Sequence[Json] = ()
    rule_files: Sequence[Path] = ()
    alertmanager: str = ""
    scrape_interval: str = "1s"
    evaluation_interval: str = "1s"
    external_labels: Mapping[str, str] = field(default_factory=dict)
    retention: str = "10y"
    """What is older is deleted; backfilled samples should survive."""

    def rendered(self) -> str:
        """JSON, which is YAML."""
        alertmanagers = [{"static_configs": [targets(self.alertmanager)]}] if self.alertmanager else []
        document = {
            "global": {
                "scrape_interval": self.scrape_interval,
                "evaluation_interval": self.evaluation_interval,
                "external_labels": dict(self.external_labels),
            },
            "storage": {"tsdb": {"retention": {"time": self.retention}}},
            "rule_files": [str(path.resolve()) for path in self.rule_files],
            "alerting": {"alertmanagers": alertmanagers},
            "scrape_configs": list(self.scrape_configs),
        }
        return json.dumps(document, indent=1)


def scrape(job: str, *urls: str, **settings: object) -> Json:
    """A scrape configuration for the servers at `urls`."""
    return {"job_name": job, "static_configs": [targets(*urls)], **settings}


def targets(*urls: str) -> Json:
    return {"targets": [urlsplit(url).netloc for url in urls]}


class PrometheusServer(Daemon):
    """Its configuration and log lie in `scratch`, and so do its samples unless they are in `data`, with blocks in it.

    A block that ends in the future makes it refuse all samples before that end.
    """

    def __init__(
        self, scratch: Path, configuration: Configuration, *, data: Path | None = None, flags: Sequence[str] = ()
    ) -> None:
        self.configuration = configuration
        self.file = scratch / "prometheus.yml"
        arguments = [
            f"--config.file={self.file}",
            f"--storage.tsdb.path={data or scratch / 'prometheus'}",
            "--web.enable-lifecycle",
            "--scrape.discovery-reload-interval=100ms",  # new targets would be scraped up to 5 s later
            "--log.level=warn",
            *flags,
        ]
        super().__init__(PROMETHEUS, arguments, log=scratch / "prometheus.log")
        self.api = Prometheus(self.url)
        scratch.mkdir(parents=True, exist_ok=True)
        self.file.write_text(configuration.rendered())

    async def reload(self, configuration: Configuration | None = None) -> None:
        """Go on with `configuration`, or read the same rule files anew. Raises: ReloadRefused."""
        wanted = configuration or self.configuration
        self.file.write_text(wanted.rendered())
        try:
            await self.reread()
        except ReloadRefused:
            self.file.write_text(self.configuration.rendered())  # for the next start
            raise
        self.configuration = wanted

    async def query(self, expression: str, *, at: float | None = None) -> Answer:
        """The value at the time `at` (seconds), or now. Raises: QueryRefused."""
        return await asyncio.to_thread(self.api.query, expression, at=at)

    async def until(self, expression: str, holds: Callable[[Answer], object], *, within: float = 30) -> Answer:
        """The first answer that `holds`. Raises: TimeoutError with the last one."""
        return await eventually(lambda: self.query(expression), holds, within=within, what=expression)

    async def until_up(self, job: str, *, number: int = 1, within: float = 30) -> None:
        """Return once the last scrapes of that `number` of the job's targets, all it has, succeeded."""
        selector = f"up{{job={json.dumps(job)}}}"
        await self.until(selector, lambda answer: [each.last for each in answer.series] == [1] * number, within=within)

    async def alerts(self, *, state: str = "firing") -> list[Json]:
        """The alerts that are in that `state`, each with labels, annotations and more."""
        found: Json = await asyncio.to_thread(self.api.get, "alerts")
        return [alert for alert in found["alerts"] if alert["state"] == state]

    async def until_firing(self, *names: str, within: float = 30) -> list[Json]:
        """The alerts, once those that fire are the ones called `names`, and no others."""
        return await eventually(
            self.alerts,
            lambda alerts: {alert["labels"]["alertname"] for alert in alerts} == set(names),
            within=within,
            what=f"the alerts of {self.url}",
        )
