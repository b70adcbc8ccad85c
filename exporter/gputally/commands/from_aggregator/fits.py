"""Asks an aggregator what pod sizes fit now, and prints the answer."""

import asyncio
import sys
from argparse import Namespace
from urllib.parse import urlencode

from gputally.client.access import access_problems, credentials_from, service_from, text_problems
from gputally.client.aggregator import InvalidQuestion, connected, of_version
from gputally.commands.question_flags import rejected
from gputally.errors import ConfigError
from gputally.model.api.fits import FITS_VERSION, FitsDocument
from gputally.model.api.paths import FITS_PATH
from gputally.output.fits import fits_answer
from gputally.output.writer import write_answer
from gputally.questions.fits import Fits
from gputally.questions.parameter import texts_of


def run_fits(asked: Fits, parsed: Namespace) -> int:
    """Print what fits now. Raises: ConfigError, AggregatorUnreachable."""
    if problems := [*text_problems(parsed), *access_problems(parsed)]:
        raise ConfigError(problems)
    try:
        body = asyncio.run(_answered(asked, parsed))
    except InvalidQuestion as error:
        raise ConfigError([rejected(error.answer, Fits)]) from None
    answer = fits_answer(of_version(body, FitsDocument, FITS_VERSION), body)
    write_answer(sys.stdout, answer, output=parsed.output)
    sys.stdout.flush()
    return 0


async def _answered(asked: Fits, parsed: Namespace) -> bytes:
    service = service_from(parsed, namespace=parsed.aggregator_namespace)
    async with connected(parsed.url, service, credentials_from(parsed)) as client:
        return await client.get(f"{FITS_PATH}?{urlencode(texts_of(asked), doseq=True)}".rstrip("?"))
