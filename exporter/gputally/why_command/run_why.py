"""Runs `gputally why`."""

import asyncio
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from gputally.errors import ConfigError, NotFound, Problem
from gputally.model.placement.pending_document import PENDING_VERSION, PendingDocument
from gputally.model.placement.why_document import WHY_VERSION, WhyDocument
from gputally.model.printable import printable
from gputally.top.api_documents import of_version
from gputally.top.client import InvalidQuestion, connected
from gputally.top.flags import access_problems, credentials_from, service_from
from gputally.why_command.pending_text import pending_lines
from gputally.why_command.why_subject import WhySubject, why_subject
from gputally.why_command.why_text import why_lines

_FLAGS: Final = {"what": "WHAT", "class_name": "--class"}
_LEAST_WIDTH: Final = 60
_MOST_WIDTH: Final = 100


def run_why(parsed: Namespace) -> int:
    """Print the answer. Raises: ConfigError, AggregatorUnreachable, NotFound."""
    if problems := [*text_problems(parsed), *access_problems(parsed)]:
        raise ConfigError(problems)
    subject = why_subject(
        parsed.what,
        namespace=parsed.namespace,
        is_job=parsed.job,
        tenant=parsed.tenant,
        everything=parsed.all,
    )
    try:
        answer = asyncio.run(_asked(parsed, subject))
    except InvalidQuestion as error:
        raise ConfigError([Problem("", "WHAT", error.answer)]) from None
    if parsed.output == "json":
        print_json(answer.body)
    elif answer.is_list:
        document = of_version(answer.body, PendingDocument, PENDING_VERSION)
        print_lines(pending_lines(document, subject=subject.text, width=width()))
    else:
        print_lines(why_lines(of_version(answer.body, WhyDocument, WHY_VERSION), width=width()))
    return 0


class _Response(NamedTuple):
    body: bytes
    is_list: bool


async def _asked(parsed: Namespace, subject: WhySubject) -> _Response:
    """The answer; if nothing waits in a namespace of that name, the one about a pod of that name, if there is one.

    Raises: NotFound, also for a namespace or tenant that is not known.
    """
    service = service_from(parsed, namespace=parsed.aggregator_namespace)
    async with connected(parsed.url, service, credentials_from(parsed)) as client:
        body = await client.get(subject.path)
        document = of_version(body, PendingDocument, PENDING_VERSION) if subject.is_list else None
        if document and subject.pod_path and not (document.pod_count or document.workload_count):
            with suppress(NotFound):
                return _Response(await client.get(subject.pod_path), is_list=False)
        if document and document.unknown:
            raise NotFound(f"no pod with GPUs is known of {' and '.join(document.unknown)}; check the name")
        return _Response(body, subject.is_list)


def text_problems(parsed: Namespace) -> list[Problem]:
    """The arguments that are not UTF-8 text, which no name in Kubernetes is."""
    given = {name: value for name, value in vars(parsed).items() if isinstance(value, str)}
    return [
        Problem("", _FLAGS.get(name, f"--{name.replace('_', '-')}"), f"'{printable(value)}' is not UTF-8 text")
        for name, value in given.items()
        if any("\ud800" <= each <= "\udfff" for each in value)
    ]


def width() -> int:
    """Of the text: the terminal's, within limits; the largest in a pipe."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _MOST_WIDTH
    return min(_MOST_WIDTH, max(_LEAST_WIDTH, columns))


def print_lines(lines: Iterable[str]) -> None:
    """Write them to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def print_json(body: bytes) -> None:
    """Write the document, indented."""
    sys.stdout.buffer.write(msgspec.json.format(body, indent=2) + b"\n")
    sys.stdout.flush()
