"""`gputally showback` against the real routes on a real ledger: every tenant gets its report and no other."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from gputally.cli import parser
from gputally.commands.from_aggregator.showback import PAUSES_SECONDS, file_name, showback, showback_options
from gputally.errors import AggregatorRefused, ConfigError, DeliveryFailed, DeliveryRejected
from gputally.web.report_processes import ReportRunner
from gputally.web.report_routes import report_routes
from gputally.web.server import serve
from tests.fakes.tenants_ledger import BLUE, RED, tenants_ledger
from tests.unit.web.test_server import site

TENANTS = {RED, BLUE, f"{BLUE}s"}
FOLDER = "1970-01-01_1970-01-01"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tenants_ledger(tmp_path)


class Hook:
    """A webhook that answers with these statuses, then with 200."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.found: list[dict[str, str]] = []

    async def post(self, request: web.Request) -> web.Response:
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.found.append(await request.json())
        return web.Response(status=status)


class Pauses(list[float]):
    """Sleeps by noting for how long."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@asynccontextmanager
async def aggregator(path: Path) -> AsyncIterator[str]:
    async with (
        ReportRunner(str(path)) as runner,
        serve(site(routes=report_routes(runner, version="1")), addresses=["127.0.0.1:0"]) as [address],
    ):
        yield f"http://{address}"


@asynccontextmanager
async def listening(hook: Hook, scratch: Path) -> AsyncIterator[Path]:
    """The file with the URL of the webhook."""
    app = web.Application()
    app.router.add_post("/secret", hook.post)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        found = web.TCPSite(runner, "127.0.0.1", 0)
        await found.start()
        path = scratch / "hook"
        path.write_text(f"http://127.0.0.1:{runner.addresses[0][1]}/secret\n")
        yield path
    finally:
        await runner.cleanup()


async def deliver(url: str, *flags: str, sleep: Callable[[float], object] | None = None) -> None:
    options = showback_options(parser().parse_args(["showback", f"--url={url}", "--window=all", *flags]))
    await showback(options, sleep=Pauses() if sleep is None else sleep)  # type: ignore[arg-type] # of the same shape


async def test_every_tenant_gets_its_files_and_none_has_lines_of_another(ledger: Path, tmp_path: Path) -> None:
    async with aggregator(ledger) as url:
        await deliver(url, f"--directory={tmp_path / 'out'}", "--by=tenant", "--formats=csv,html")

    folder = tmp_path / "out" / FOLDER
    assert {each.name for each in folder.iterdir()} == {
        f"{name}.{end}" for name in (RED, "%3Cblue%3E", "%3Cblue%3Es") for end in ("csv", "html")
    }
    lines = (folder / "%3Cblue%3E.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == [BLUE]


async def test_a_webhook_gets_one_document_for_each_tenant(ledger: Path, tmp_path: Path) -> None:
    hook = Hook()
    async with aggregator(ledger) as url, listening(hook, tmp_path) as path:
        await deliver(url, f"--webhook-url-file={path}")

    assert [each["tenant"] for each in hook.found] == sorted(TENANTS)
    assert hook.found[0]["text"].startswith("# GPU cost from 1970-01-01")
    assert (hook.found[0]["from"], hook.found[0]["to"]) == ("1970-01-01T00:16:40Z", "1970-01-01T05:00:00Z")


async def test_a_failed_request_is_repeated_after_growing_pauses(ledger: Path, tmp_path: Path) -> None:
    hook, pauses = Hook(500, 429, 503), Pauses()
    async with aggregator(ledger) as url, listening(hook, tmp_path) as path:
        await deliver(url, f"--webhook-url-file={path}", sleep=pauses)

    assert len(hook.found) == len(TENANTS)
    assert tuple(pauses) == PAUSES_SECONDS[:3]


@pytest.mark.parametrize(
    ("status", "error", "pauses"), [(404, DeliveryRejected, 0), (302, DeliveryRejected, 0), (500, DeliveryFailed, 4)]
)
async def test_a_webhook_that_takes_nothing_is_an_error_that_does_not_show_its_url(
    ledger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
    error: type[DeliveryFailed],
    pauses: int,
) -> None:
    slept = Pauses()
    async with aggregator(ledger) as url, listening(Hook(*[status] * 9), tmp_path) as path:
        with pytest.raises(error, match=f"the webhook answered HTTP {status}") as caught:
            await deliver(url, f"--webhook-url-file={path}", sleep=slept)

    assert len(slept) == pauses
    assert "secret" not in str(caught.value) + "".join(capsys.readouterr())


async def test_what_the_aggregator_rejects_is_not_repeated(ledger: Path, tmp_path: Path) -> None:
    slept = Pauses()
    async with aggregator(ledger) as url:
        with pytest.raises(AggregatorRefused, match="nothing is accounted in '1999'"):
            await deliver(url, f"--directory={tmp_path}", "--window=1999", sleep=slept)

    assert slept == []


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--url=localhost"], "--url: 'localhost' is not a URL; use one such as http://localhost:9836"),
        ([], "--directory: name a folder for files, or --webhook-url-file, or both"),
        (["--user=anna", "--directory=x"], "--user: requires --password-file"),
    ],
)
def test_wrong_flags_are_named_with_their_remedy(flags: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        showback_options(parser().parse_args(["showback", "--url=http://x", *flags]))

    assert problem in str(caught.value)


@pytest.mark.parametrize("text", ["", "ftp://x", "https://a b"])
async def test_a_webhook_file_without_one_url_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "hook").write_text(text)

    with pytest.raises(ConfigError, match="does not contain one URL") as caught:
        await deliver("http://127.0.0.1:1", f"--webhook-url-file={tmp_path / 'hook'}")

    assert not text or text not in str(caught.value)


@pytest.mark.parametrize(
    ("tenant", "name"),
    [("research", "research.csv"), ("../x", "%2E.%2Fx.csv"), (".", "%2E.csv"), ("a/b", "a%2Fb.csv"), ("", "none.csv")],
)
def test_a_tenant_never_names_another_folder(tenant: str, name: str) -> None:
    assert file_name(tenant, "csv") == name
