"""Which agents are asked, and where."""

from pathlib import Path

import pytest

from gputally.aggregator.settings import AgentOptions, Target
from gputally.model.usage import AgentPod


def pod(node: str, address: str) -> AgentPod:
    return AgentPod(uid=f"uid-{node}", node=node, address=address, created_us=0)


FOUND = {"n1": pod("n1", "10.0.0.1"), "n2": pod("n2", "fd00::2")}


def test_agents_that_are_found_answer_at_their_address_and_the_port() -> None:
    assert AgentOptions(port=99).targets(FOUND) == [
        Target("n1", "http://10.0.0.1:99"),
        Target("n2", "http://[fd00::2]:99"),
    ]


@pytest.mark.parametrize(
    "options", [AgentOptions(authority=Path("some.pem")), AgentOptions(certificate=Path("some.pem"))]
)
def test_with_an_authority_or_a_certificate_they_are_asked_by_https(options: AgentOptions) -> None:
    [target, _] = options.targets(FOUND)

    assert target.url == "https://10.0.0.1:9837"


def test_an_agent_that_is_named_is_asked_instead_of_the_one_that_is_found() -> None:
    named = (Target("n2", "http://elsewhere"), Target("n3", "http://more"))

    assert AgentOptions(urls=named).targets(FOUND) == [*named, Target("n1", "http://10.0.0.1:9837")]


@pytest.mark.parametrize(
    "address", ["host", "10.0.0.1:80/x?", "user@10.0.0.1", "fe80::1%eth0", "10.0.0.1#", "1\r\n", ""]
)
def test_what_is_no_ip_address_is_not_asked(address: str) -> None:
    assert AgentOptions().targets(FOUND | {"n1": pod("n1", address)}) == AgentOptions().targets({"n2": FOUND["n2"]})
