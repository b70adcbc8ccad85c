"""A real Prometheus scrapes through TLS with credentials of each kind, and says why where it may not."""

from pathlib import Path

import pytest

from tests.cluster.manifests import Json
from tests.fakes.certificates import Certificates
from tests.fakes.policies import MUTUAL, TLS, SiteClient, config, hashed, policies
from tests.prometheus.daemon import eventually
from tests.prometheus.server import Configuration, PrometheusServer, scrape

pytestmark = pytest.mark.e2e

TOKEN = "0123456789abcdef"
_REFUSED = ("certificate required", "connection reset", "EOF", "server closed idle connection")
"""What Go says of a server that ends the connection: with TLS 1.3, a client learns it only after the handshake."""
USERS = f"""
basic_auth_users:
  prometheus: {hashed("secret", cost=10)}
bearer_token_files:
  robot: token
"""


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    (tmp_path / "token").write_text(TOKEN)
    return Certificates(tmp_path)


def scraped(door: SiteClient, certificates: Certificates, *, job: str = "gputally", **settings: object) -> Json:
    """A scrape configuration that trusts the authority."""
    tls: dict[str, object] = {"ca_file": str(certificates.authority)}
    more = settings.pop("tls_config", {})
    assert isinstance(more, dict)
    return scrape(job, door.url, scheme="https", tls_config=tls | more, **settings)


def shown(certificates: Certificates, name: str) -> Json:
    """The certificate and key of that name."""
    return {"cert_file": str(certificates.certificate(name)), "key_file": str(certificates.key(name))}


async def errors(prometheus: PrometheusServer) -> dict[str, str]:
    """Why the last scrape of each job failed; empty where it did not."""
    found: Json = await eventually(
        lambda: prometheus_targets(prometheus),
        lambda targets: all(target["health"] != "unknown" for target in targets["activeTargets"]),
        within=30,
        what="the targets",
    )
    return {target["labels"]["job"]: target["lastError"] for target in found["activeTargets"]}


async def prometheus_targets(prometheus: PrometheusServer) -> Json:
    found: Json = prometheus.api.get("targets")
    return found


async def test_a_password_and_a_token_are_shown_over_tls_and_wrong_ones_are_told(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with policies(config(tmp_path, TLS + USERS)) as door:
        jobs = {
            "password": {"basic_auth": {"username": "prometheus", "password": "secret"}},
            "token": {"authorization": {"credentials": TOKEN}},
            "wrong-password": {"basic_auth": {"username": "prometheus", "password": "guess"}},
            "wrong-token": {"authorization": {"credentials": "guess"}},
            "nothing": {},
        }
        scrapes = [scraped(door, certificates, job=job, **settings) for job, settings in jobs.items()]
        async with PrometheusServer(tmp_path, Configuration(scrape_configs=scrapes)) as prometheus:
            await prometheus.until_up("password")
            await prometheus.until_up("token")
            answer = await prometheus.until("up", lambda answer: len(answer.series) == len(jobs))
            told = await errors(prometheus)

    assert answer.by("job") == {(job,): float(job in ("password", "token")) for job in jobs}
    assert told["wrong-password"] in (
        "server returned HTTP status 401 Unauthorized",
        "server returned HTTP status 429 Too Many Requests",
    )
    assert told["wrong-token"] == told["nothing"] == "server returned HTTP status 401 Unauthorized"


async def test_a_certificate_is_shown_and_without_one_the_handshake_fails(
    certificates: Certificates, tmp_path: Path
) -> None:
    certificates.self_signed("stranger")
    async with policies(config(tmp_path, MUTUAL)) as door:
        scrapes = [
            scraped(door, certificates, job="client", tls_config=shown(certificates, "client")),
            scraped(door, certificates, job="stranger", tls_config=shown(certificates, "stranger")),
            scraped(door, certificates, job="nobody"),
        ]
        async with PrometheusServer(tmp_path, Configuration(scrape_configs=scrapes)) as prometheus:
            await prometheus.until_up("client")
            await prometheus.until("up", lambda answer: len(answer.series) == len(scrapes))
            told = await errors(prometheus)

    assert told["client"] == ""
    assert any(each in told["nobody"] for each in _REFUSED), told["nobody"]
    assert told["stranger"]


async def test_scrapes_go_on_while_certificates_are_replaced(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputally.web.connections.IDLE_SECONDS", 0.3)  # every scrape is a connection of its own
    monkeypatch.setattr("gputally.web.connections._SWEEP_SECONDS", 0.1)
    async with policies(config(tmp_path, MUTUAL)) as door:
        scrapes = [scraped(door, certificates, tls_config=shown(certificates, "client"))]
        async with PrometheusServer(tmp_path, Configuration(scrape_configs=scrapes)) as prometheus:
            await prometheus.until_up("gputally")
            for name in ("server", "client") * 2:
                certificates.renew(name)
                before = (await prometheus.query("count_over_time(up[1h])")).value
                await prometheus.until(f"count_over_time(up[1h]) > {before + 1}", lambda answer: answer.series)

            assert (await prometheus.query("min_over_time(up[1h])")).value == 1
            assert (await prometheus.query('gputally_gpus{tenant="vision"}')).value == 8
