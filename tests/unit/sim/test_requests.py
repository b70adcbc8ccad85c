import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.api.requests import parse_path, wants_metadata_only


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/team/pods", ("pods", "team", "", "")),
        ("/api/v1/namespaces/team/pods/a/status", ("pods", "team", "a", "status")),
        ("/api/v1/namespaces/team", ("namespaces", "", "team", "")),
        ("/api/v1/namespaces/team/status", ("namespaces", "", "team", "status")),
        ("/api/v1/nodes/n0", ("nodes", "", "n0", "")),
        ("/apis/batch/v1/namespaces/team/jobs/j", ("jobs", "team", "j", "")),
    ],
)
def test_a_path_names_resource_namespace_object_and_subresource(path: str, read: tuple[str, ...]) -> None:
    target = parse_path(path)

    assert (target.resource.plural, target.namespace, target.name, target.subresource) == read


@pytest.mark.parametrize("path", ["/", "/api", "/api/v2/pods", "/apis/batch/v1/pods", "/apis/kueue.x-k8s.io/v1/x"])
def test_what_is_not_served_is_not_found(path: str) -> None:
    with pytest.raises(StatusError, match="could not find the requested resource"):
        parse_path(path)


def test_metadata_is_enough_only_for_a_client_that_prefers_it() -> None:
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

    assert wants_metadata_only(f"{partial}, application/json")
    assert not wants_metadata_only(f"application/json, {partial}")
