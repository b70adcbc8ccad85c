"""Runs `gputally why`."""

import asyncio
from argparse import Namespace
from contextlib import suppress
from typing import NamedTuple

from gputally.errors import ConfigError, NotFound, Problem
from gputally.model.api.pending import PENDING_VERSION, PendingDocument
from gputally.model.api.why import WHY_VERSION, WhyDocument
from gputally.top.access_flags import access_problems, credentials_from, service_from, text_problems
from gputally.top.api_documents import of_version
from gputally.top.client import InvalidQuestion, connected
from gputally.why_command.pending_text import pending_lines
from gputally.why_command.text_lines import print_json, print_lines, width
from gputally.why_command.why_subject import WhySubject, why_subject
from gputally.why_command.why_text import why_lines


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
