"""Long and cyclic owner chains of objects that the tenant may create, with pods at the end."""

from labs.hostile.tenant import Tenant, owned, owner
from tests.cluster.manifests import Json, metadata

NAME = "owner chains"


async def attack(tenant: Tenant) -> None:
    """Create a chain of ConfigMaps and close it to a cycle, and a chain of pods that own pods."""
    chain: list[Json] = []
    for _ in tenant.many(150):
        made = await tenant.create(NAME, _config_map(tenant, chain[-1:]))
        if made:
            chain.append(made | {"kind": "ConfigMap"})
    if chain:
        await tenant.patch(NAME, _of(tenant, chain[0]), {"metadata": {"ownerReferences": [_reference(chain[-1])]}})
        for link in chain[-1:] + chain[:1]:
            await tenant.create(NAME, owned(tenant.pod("chained"), _reference(link)))
    above: list[Json] = []
    for _ in tenant.many(50):
        made = await tenant.create(NAME, owned(tenant.pod("chained"), *map(_reference, above[-1:])))
        above += [made | {"kind": "Pod"}] if made else []


def _config_map(tenant: Tenant, above: list[Json]) -> Json:
    meta = metadata(tenant.name("link"), tenant.target.namespace) | {"ownerReferences": [*map(_reference, above)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def _of(tenant: Tenant, made: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(made["metadata"]["name"], tenant.target.namespace),
    }


def _reference(made: Json) -> Json:
    return owner(made["kind"], made["metadata"]["name"], made["metadata"]["uid"])
