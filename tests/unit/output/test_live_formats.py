"""What an aggregator answers has the formats of all answers."""

import io
from collections.abc import Callable

import msgspec
import pytest

from gputally.formatting.formats import FORMATS
from gputally.output.answer import Answer
from gputally.output.fits import fits_answer
from gputally.output.what_if import what_if_answer
from gputally.output.why import pending_answer, why_answer
from gputally.output.writer import write_answer
from tests.conftest import Golden
from tests.unit.output.fits_documents import FINDINGS, FITS
from tests.unit.output.what_if_documents import EXAMPLE
from tests.unit.output.why_documents import ANSWER, why

ANSWERS: dict[str, Callable[[], Answer]] = {
    "fits": lambda: fits_answer(FITS, msgspec.json.encode(FITS)),
    "what-if": lambda: what_if_answer(EXAMPLE, msgspec.json.encode(EXAMPLE)),
    "pending": lambda: pending_answer(FINDINGS, msgspec.json.encode(FINDINGS), subject=""),
    "why": lambda: why_answer(why(ANSWER), msgspec.json.encode(why(ANSWER))),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("output", FORMATS)
def test_an_answer_is_as_recorded(golden: Golden, name: str, output: str) -> None:
    file = io.StringIO()

    write_answer(file, ANSWERS[name](), output=output)

    golden.check(f"live/{name}.{output}", file.getvalue())
