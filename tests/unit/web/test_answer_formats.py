"""All answers of the ledger over HTTP have the same formats: those that their commands print."""

import json
from pathlib import Path
from typing import Any

import pytest

from gputally.formatting.formats import FORMATS
from gputally.model.api.paths import (
    PENDING_PATH,
    PREEMPTIONS_PATH,
    REPORT_PATH,
    WAITS_PATH,
    WHAT_IF_PATH,
    WHY_PATH,
)
from gputally.model.disruptions import Cause
from gputally.model.verdicts import Reason
from gputally.web.openapi import MEDIA_TYPES, PENDING_DESCRIBED, openapi
from gputally.web.report_routes import OPENAPI_PATH
from tests.fakes.waits_ledger import waits_ledger
from tests.unit.commands.sample import Runner
from tests.unit.web.test_report_route import ALL, served

PATHS = {REPORT_PATH: "report", WAITS_PATH: "waits", PREEMPTIONS_PATH: "preemptions"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """See `waits_ledger`."""
    return waits_ledger(tmp_path)


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_has_every_format_of_its_command(
    ledger: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    run = Runner(capsys)
    async with served(ledger) as client:
        for form, media_type in MEDIA_TYPES.items():
            async with client.get(path, params=ALL | {"format": form}) as answer:
                assert (answer.status, answer.content_type) == (200, media_type)
                found = await answer.text()
            printed = run(PATHS[path], "--ledger", ledger, "--window", "all", "--output", form).out
            if form == "json":
                assert json.loads(found).items() >= json.loads(printed).items()
            else:
                assert found == printed


def test_the_description_of_the_api_names_the_values_of_parameters_that_have_few() -> None:
    described = openapi("1", more=PENDING_DESCRIBED)["paths"]

    def schemas(path: str) -> dict[str, dict[str, Any]]:
        found = {each["name"]: each["schema"] for each in described[path]["get"]["parameters"]}
        return {name: schema.get("items", schema) for name, schema in found.items()}

    of_pending, of_preemptions = schemas(PENDING_PATH), schemas(PREEMPTIONS_PATH)
    assert of_pending["reason"] == {"type": "string", "enum": [*Reason]}
    assert of_pending["limit"] == {"type": "string", "default": "100"}
    assert of_preemptions["cause"] == {"type": "string", "enum": [*Cause]}
    assert of_preemptions["tenant"] == of_pending["tenant"] == schemas(WHY_PATH)["pod"] == {"type": "string"}
    assert schemas(WHAT_IF_PATH)["count"] == {"type": "string", "default": "1"}


async def test_the_description_of_the_api_names_the_formats_of_each_answer(ledger: Path) -> None:
    async with served(ledger) as client, client.get(OPENAPI_PATH) as answer:
        described = json.loads(await answer.text())["paths"]

    for path in PATHS:
        operation = described[path]["get"]
        [schema] = [each["schema"] for each in operation["parameters"] if each["name"] == "format"]
        assert schema == {"type": "string", "default": "json", "enum": ["json", "table", "markdown", "html", "csv"]}
        assert operation["responses"]["200"]["content"].keys() == {MEDIA_TYPES[form] for form in FORMATS}
