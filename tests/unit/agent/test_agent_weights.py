"""The agent as a process of its own weighs by the aggregator's configuration."""

from pathlib import Path

from tests.fakes.kubelet import Kubelet, pod
from tests.unit.agent.test_agent import FULL, SLICED, agent, assignment, kubelet, of

__all__ = ["kubelet"]  # a fixture is found by its name

WEIGHTS = """
kind: Configuration
mig: {basis: memory}
resources:
  rules:
    - {pattern: example.com/part, weight: 1/4}
"""


async def test_slices_and_resources_weigh_as_the_aggregators_configuration_says(
    tmp_path: Path, kubelet: Kubelet
) -> None:
    (tmp_path / "config.yaml").write_text(WEIGHTS)
    kubelet.pods = [pod("ml/train", {"nvidia.com/gpu": ["MIG-a"]}), pod("ml/tune", {"example.com/part": ["GPU-full"]})]
    async with agent(tmp_path, "--config.file", tmp_path / "config.yaml", gpus=(SLICED, FULL)) as node:
        await node.until(lambda s: of(s, "gputally_container_gpu_share_ratio", 'pod="tune"'))
        report = await node.usage()

    assert report.mig_basis == "memory"
    assert (assignment(report).share, assignment(report, "tune").share) == (125_000, 250_000)
