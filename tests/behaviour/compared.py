"""The records of preemptions beside the truth about them."""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping

from tests.behaviour.product import Product, Samples, total
from tests.behaviour.recorder import Recorder
from tests.behaviour.true_preemptions import TruePreemptions, differences, preemptors
from tests.cluster.api import Api
from tests.cluster.manifests import Json
from tests.fakes.command import run

logger = logging.getLogger(__name__)

KUBELET_S = 2
"""By how much a grace period may be exceeded before it counts: kubelets need time, and API times have whole seconds."""


class Compared:
    """What `product` records of the pods that `recorder` watches; their namespaces are `place` and further ones."""

    def __init__(self, api: Api, place: str, *, product: Product, recorder: Recorder) -> None:
        self.api = api
        self.place = place
        self.product = product
        self.recorder = recorder
        self.namespaces = [place]

    async def truth(self, *, within: float = 30) -> TruePreemptions:
        """Of now; victims that are still there are left to end first, and the scheduler to name their preemptors."""
        async with asyncio.timeout(within):
            while True:
                victims = self.recorder.victims()
                by = await preemptors(self.api, *self.namespaces)
                if by.keys() >= victims and all(self.recorder.forms[uid][-1][0] == "DELETED" for uid in victims):
                    return TruePreemptions(self.recorder, by)
                await asyncio.sleep(0.1)

    async def listed(self) -> list[Json]:
        """What `gputally preemptions` shows of the namespaces."""
        scope = ("--window", "all", "--where", f"namespace={','.join(self.namespaces)}")
        done = await run("preemptions", "--ledger", self.product.ledger, "--output", "json", *scope)
        assert done.status == 0, done.err
        rows: list[Json] = json.loads(done.out)["rows"]
        return rows

    async def agrees(self, truth: Mapping[str, Json], *, within: float = 30) -> list[Json]:
        """The records, once they show nothing but the truth."""
        wrong: list[str] = []
        try:
            async with asyncio.timeout(within):
                while wrong := differences(rows := await self.listed(), truth):  # noqa: ASYNC110 - no signal
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError("\n".join(wrong)) from None
        logger.info("%d records with %d fields are true", len(truth), sum(map(len, truth.values())))
        return rows

    async def counted(self, truth: TruePreemptions) -> Samples:
        """A scrape, once the counters of the victims' tiers are those of the truth; other tests have other tiers."""
        matrix = truth.matrix()
        tiers = {victim for victim, _ in matrix}
        samples = await self.product.until(lambda samples: by_tiers(samples, tiers) == matrix)
        for tier in tiers:
            victims = [each for each in truth.victims.values() if each.tier == tier]
            assert total(samples, "gputally_disruptions_total", tier=tier, cause="preemption") == len(victims)
            taken = total(samples, "gputally_preempted_gpus_total", victim_tier=tier)
            assert taken == sum(each.gpus for each in victims)
            assert total(samples, "gputally_forbidden_preemptions_total", victim_tier=tier) == 0
            late = [each for each in victims if each.grace_exceeded > KUBELET_S]
            assert total(samples, "gputally_grace_period_exceeded_total", tier=tier) == len(late)
        return samples


def by_tiers(samples: Samples, victims: Collection[str]) -> dict[tuple[str, str], float]:
    """How often each of the tiers `victims` lost GPUs to which, as counted."""
    found = {}
    for (name, labels), value in samples.items():
        tiers = dict(labels)
        if name == "gputally_preemptions_total" and tiers["victim_tier"] in victims and value:
            found[tiers["victim_tier"], tiers["preemptor_tier"]] = value
    return found
