"""Asks an aggregator why pods wait, and prints the answer."""

import asyncio
import sys
from argparse import Namespace
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlencode

from gputally.client.access import access_problems, credentials_from, service_from, text_problems
from gputally.client.aggregator import InvalidQuestion, connected, of_version
from gputally.errors import ConfigError, NotFound, Problem
from gputally.model.api.paths import PENDING_PATH, WHY_PATH
from gputally.model.api.pending import PENDING_VERSION, PendingDocument
from gputally.model.api.why import WHY_VERSION, WhyDocument
from gputally.model.printable import printable
from gputally.output.why import pending_answer, why_answer
from gputally.output.writer import write_answer

_POD_WORDS: Final = frozenset({"pod", "pods", "po"})
_JOB_WORDS: Final = frozenset({"job", "jobs", "job.batch"})
_MOST_PODS: Final = "1000"


class WhySubject(NamedTuple):
    """The `path` with its query. It is one pod or job unless `is_list`; `text` is how a sentence names a list.

    `pod_path` asks for a pod of the name that was taken for a namespace, "" if that is not possible.
    """

    path: str
    is_list: bool
    text: str = ""
    pod_path: str = ""


def why_subject(what: str, *, namespace: str, is_job: bool, tenant: str, everything: bool) -> WhySubject:
    """The subject of these flags. Raises: ConfigError."""
    given = [flag for flag, value in (("WHAT", what), ("--tenant", tenant), ("--all", everything)) if value]
    given += ["--namespace"] if namespace and (tenant or everything) else []
    if len(given) > 1:
        raise ConfigError([Problem("", given[1], f"cannot be combined with {given[0]}; omit one of them")])
    if everything:
        return _listed({}, "")
    if tenant:
        return _listed({"tenant": tenant}, f"of tenant {tenant}")
    if not what:
        if namespace and not is_job:
            return _listed({"namespace": namespace}, f"in namespace {namespace}")
        raise ConfigError([Problem("", "WHAT", "is missing; name a pod as NAMESPACE/POD, or use --all")])
    return _named(what, namespace, is_job=is_job)


def _shown(what: str) -> str:
    return f"'{printable(what)}'"


def _named(what: str, namespace: str, *, is_job: bool) -> WhySubject:
    parts = what.split("/")
    if namespace:
        parts = [namespace, *parts]
    elif len(parts) > 1 and parts[0] in _POD_WORDS | _JOB_WORDS and len(parts) == 2:  # noqa: PLR2004 - KIND/NAME
        raise ConfigError([Problem("", "WHAT", f"{_shown(what)} has no namespace; add --namespace NAMESPACE")])
    if not all(parts):
        raise ConfigError([Problem("", "WHAT", f"{_shown(what)} has an empty part; use NAMESPACE/POD")])
    match parts:
        case [place] if not is_job:
            pod_path = f"{WHY_PATH}?{urlencode({'pod': place})}"
            return _listed({"namespace": place}, f"in namespace {place}")._replace(pod_path=pod_path)
        case [place, name]:
            return _single(place, "job" if is_job else "pod", name)
        case [place, word, name] if word in _POD_WORDS and not is_job:
            return _single(place, "pod", name)
        case [place, word, name] if word in _JOB_WORDS:
            return _single(place, "job", name)
    form = "NAMESPACE/NAME" if is_job else "NAMESPACE/POD, NAMESPACE/job/NAME or NAMESPACE"
    raise ConfigError([Problem("", "WHAT", f"{_shown(what)} is not valid; use {form}")])


def _single(namespace: str, kind: str, name: str) -> WhySubject:
    return WhySubject(f"{WHY_PATH}?{urlencode({'namespace': namespace, kind: name})}", is_list=False)


def _listed(query: dict[str, str], text: str) -> WhySubject:
    return WhySubject(f"{PENDING_PATH}?{urlencode(query | {'limit': _MOST_PODS})}", is_list=True, text=text)


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
        found = asyncio.run(_asked(parsed, subject))
    except InvalidQuestion as error:
        raise ConfigError([Problem("", "WHAT", error.answer)]) from None
    if found.is_list:
        listed = of_version(found.body, PendingDocument, PENDING_VERSION)
        answer = pending_answer(listed, found.body, subject=subject.text)
    else:
        answer = why_answer(of_version(found.body, WhyDocument, WHY_VERSION), found.body)
    write_answer(sys.stdout, answer, output=parsed.output)
    sys.stdout.flush()
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
