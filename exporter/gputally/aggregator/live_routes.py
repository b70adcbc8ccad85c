"""The pages of what is so now: who has which GPUs, and whose work is at risk."""

from collections.abc import Sequence

from aiohttp import web

from gputally.aggregator.pipeline import Pipeline
from gputally.answers.allocations import AllocationsNow
from gputally.process.clock import Clock
from gputally.web.filtered_routes import allocations_route, at_risk_route


def live_routes(pipeline: Pipeline, clock: Clock) -> Sequence[web.AbstractRouteDef]:
    """The routes of the aggregator; each request reads the accounting once."""
    return (
        allocations_route(lambda: allocations_now(pipeline, clock)),
        at_risk_route(lambda: pipeline.accountant.read_risk(now_us=clock())),
    )


def allocations_now(pipeline: Pipeline, clock: Clock) -> AllocationsNow:
    """The pods and nodes now."""
    at_us = clock()
    book = pipeline.fleet.pricing.book
    active = pipeline.accountant.read_active(now_us=at_us)
    return AllocationsNow(active, at_us, book.currency if book else "")
