"""Answers of an aggregator as lines of a terminal."""

from gputally.formatting.wrapping import Parts, text_lines
from gputally.model.api.fits import FitsDocument
from gputally.model.api.pending import PendingDocument
from gputally.model.api.what_if import WhatIfDocument
from gputally.model.api.why import WhyDocument
from gputally.output.fits import fits_parts
from gputally.output.what_if import what_if_parts
from gputally.output.why import pending_parts, why_parts


def _lines(parts: Parts, width: int) -> list[str]:
    return list(text_lines(parts, width=width))


def why_lines(document: WhyDocument, *, width: int) -> list[str]:
    return _lines(why_parts(document), width)


def pending_lines(document: PendingDocument, *, subject: str, width: int) -> list[str]:
    return _lines(pending_parts(document, subject=subject), width)


def what_if_lines(document: WhatIfDocument, *, width: int) -> list[str]:
    return _lines(what_if_parts(document), width)


def fits_lines(document: FitsDocument, *, width: int) -> list[str]:
    return _lines(fits_parts(document), width)
