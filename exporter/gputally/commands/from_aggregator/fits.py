"""Asks an aggregator what pod sizes fit now, and prints the answer."""

import asyncio
import sys
from argparse import Namespace
from urllib.parse import urlencode

from gputally.answers.parameters import FITS_PARAMETERS
from gputally.client.access import access_problems, credentials_from, service_from, text_problems
from gputally.client.aggregator import InvalidQuestion, connected, of_version
from gputally.errors import ConfigError, Problem
from gputally.model.api.fits import FITS_VERSION, FitsDocument
from gputally.model.api.paths import FITS_PATH
from gputally.output.fits import fits_answer
from gputally.output.writer import write_answer


def run_fits(parsed: Namespace) -> int:
    """Print what fits now. Raises: ConfigError, AggregatorUnreachable."""
    if problems := [*text_problems(parsed), *access_problems(parsed)]:
        raise ConfigError(problems)
    try:
        body = asyncio.run(_asked(parsed))
    except InvalidQuestion as error:
        raise ConfigError([_rejected(error.answer)]) from None
    answer = fits_answer(of_version(body, FitsDocument, FITS_VERSION), body)
    write_answer(sys.stdout, answer, output=parsed.output)
    sys.stdout.flush()
    return 0


def _rejected(answer: str) -> Problem:
    """What the aggregator says of the flag that it names."""
    word, _, rest = answer.partition(" ")
    return Problem("", f"--{word}", rest) if word in FITS_PARAMETERS else Problem("", "--model", answer)


async def _asked(parsed: Namespace) -> bytes:
    chosen = {name: value for name in FITS_PARAMETERS if (value := getattr(parsed, name))}
    service = service_from(parsed, namespace=parsed.aggregator_namespace)
    async with connected(parsed.url, service, credentials_from(parsed)) as client:
        return await client.get(f"{FITS_PATH}?{urlencode(chosen)}".rstrip("?"))
