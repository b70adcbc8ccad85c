"""What `gputally why` is asked about."""

import pytest

from gputally.commands.from_aggregator.why import WhySubject, why_subject
from gputally.errors import ConfigError


def subject(
    what: str = "", *, namespace: str = "", job: bool = False, tenant: str = "", all_: bool = False
) -> WhySubject:
    return why_subject(what, namespace=namespace, is_job=job, tenant=tenant, everything=all_)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (subject("ml/a"), "/api/v1/why?namespace=ml&pod=a"),
        (subject("a", namespace="ml"), "/api/v1/why?namespace=ml&pod=a"),
        (subject("pod/a", namespace="ml"), "/api/v1/why?namespace=ml&pod=a"),
        (subject("ml/pod/a"), "/api/v1/why?namespace=ml&pod=a"),
        (subject("ml/job/a"), "/api/v1/why?namespace=ml&job=a"),
        (subject("job/a", namespace="ml"), "/api/v1/why?namespace=ml&job=a"),
        (subject("ml/a", job=True), "/api/v1/why?namespace=ml&job=a"),
        (subject("ml"), "/api/v1/pending?namespace=ml&limit=1000"),
        (subject(namespace="ml"), "/api/v1/pending?namespace=ml&limit=1000"),
        (subject(tenant="a&b"), "/api/v1/pending?tenant=a%26b&limit=1000"),
        (subject(all_=True), "/api/v1/pending?limit=1000"),
    ],
)
def test_every_way_to_write_it_has_one_address(given: WhySubject, path: str) -> None:
    assert given.path == path


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "WHAT: is missing; name a pod as NAMESPACE/POD, or use --all"),
        ({"what": "ml/a", "all_": True}, "--all: cannot be combined with WHAT; omit one of them"),
        ({"what": "pod/a"}, "WHAT: 'pod/a' has no namespace; add --namespace NAMESPACE"),
        ({"what": "ml/"}, "WHAT: 'ml/' has an empty part; use NAMESPACE/POD"),
        (
            {"what": "ml/cronjob/a"},
            "WHAT: 'ml/cronjob/a' is not valid; use NAMESPACE/POD, NAMESPACE/job/NAME or NAMESPACE",
        ),
        ({"all_": True, "namespace": "ml"}, "--namespace: cannot be combined with --all; omit one of them"),
        ({"what": "ml", "job": True}, "WHAT: 'ml' is not valid; use NAMESPACE/NAME"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_remedy(flags: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        subject(**flags)  # type: ignore[arg-type]  # the flags of the function

    assert str(error.value) == message
