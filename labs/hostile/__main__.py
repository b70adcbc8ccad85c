"""Runs the hostile tenant as a separate process: `python -m labs.hostile`, with its plan (JSON) on standard input.

It prints one line of JSON after the early attacks, and one at the end with the accepted and rejected requests.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from labs.hostile.attacks.every import ATTACKS, EARLY, Attack
from labs.hostile.tenant import Target, Tenant
from tests.cluster.api import Api


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The target and intensity of the attacks; `scale` 1 is a full campaign."""

    url: str
    token: str
    ca_file: str
    target: Target
    scale: float
    per_second: float
    lasts_s: float
    """Time limit; unfinished attacks are cancelled."""


async def attack(plan: Plan) -> None:
    """Run all attacks, the early ones first."""
    async with Api(plan.url, plan.token, Path(plan.ca_file)) as api:
        tenant = Tenant(api, plan.target, per_second=plan.per_second, scale=plan.scale)
        unfinished: set[str] = {*EARLY, *ATTACKS}

        async def run(name: str, attack: Attack) -> None:
            await attack(tenant)
            unfinished.discard(name)

        try:
            async with asyncio.timeout(plan.lasts_s):
                await asyncio.gather(*(run(*each) for each in EARLY.items()))
                say({"early": "done"})
                await asyncio.gather(*(run(*each) for each in ATTACKS.items()))
        except TimeoutError:
            pass
    say({"accepted": tenant.accepted, "refused": tenant.refused, "unfinished": sorted(unfinished)})


def say(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(attack(msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)))
