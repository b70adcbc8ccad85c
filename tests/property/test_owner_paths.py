"""Whatever references say, the bytes that reach the API server ask for one object of a kind it has, or for nothing."""

import asyncio
import json
import re
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from gputally.kube.api import Access, Api, new_session
from gputally.kube.owners import Owners
from gputally.model.kube.meta import Owner, OwnerReference, can_exist
from tests.fakes.discovery import KINDS, group_list, resource_list

FRAGMENTS = (
    *("..", ".", "/", "//", "%", "%2e", "%2F", "%00", "?", "#", "\\", ";", ":", "@", "&", "=", "+", " ", "~", "*"),
    *("\r\n", "\n", "\t", "\x00", "\x7f", "\u2028", "\u202e", "é", "\ufeff", "\ud800", "𝄞", "."),
    *("pods", "watch=true", "kube-system", "configmaps", "namespaces", "api", "v1", "a", "A", "-"),
    *(" HTTP/1.1\r\nHost: elsewhere\r\n\r\n", "http://elsewhere/"),
)
hostile = st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join) | st.text(max_size=300)
known_kinds = st.sampled_from([(version, kind) for version, kinds in KINDS.items() for kind in kinds])
known_names = st.tuples(known_kinds, hostile).map(lambda both: (*both[0], both[1]))
references = st.builds(
    lambda named, uid: OwnerReference(api_version=named[0], kind=named[1], name=named[2], uid=uid, controller=True),
    known_names | st.tuples(hostile, hostile, hostile) | st.tuples(st.sampled_from(list(KINDS)), hostile, hostile),
    st.sampled_from(["uid", ""]) | hostile,
)
RESOURCES = "|".join(plural for kinds in KINDS.values() for plural, _ in kinds.values())
OBJECT = re.compile(
    rf"GET (?:/api|/apis/[a-z.]+)/v1(?:/namespaces/ml)?/(?:{RESOURCES})/((?:[A-Za-z0-9._~-]|%[0-9A-F]{{2}})+) HTTP/1\.1"
)
DISCOVERY = re.compile(r"GET (/apis|/api/v1|/apis/[a-z.]+/v1) HTTP/1\.1")


class Wire:
    """A server that keeps the bytes of every request, and finds no object."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.connections: list[asyncio.Task[None]] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.create_task(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until its client ends it."""
        while head := (await reader.read(1 << 16)).decode("latin-1"):
            self.requests.append(head)
            body = json.dumps(self.answer(head.split()[1])).encode()
            status = b"404 Not Found" if OBJECT.match(head) else b"200 OK"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        writer.close()
        await writer.wait_closed()

    def answer(self, target: str) -> object:
        if target == "/apis":
            return group_list()
        version = target.removeprefix("/apis/").removeprefix("/api/")
        return resource_list(version) if version in KINDS else {"kind": "Status", "code": 404}


async def look_up(wire: Wire, reference: OwnerReference) -> None:
    server = await asyncio.start_server(wire.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    access = Access(server=f"http://127.0.0.1:{port}", login="the test", authorization=lambda: "")
    async with new_session() as session:
        owners = Owners(Api(session, access, reread=lambda: access), clock=lambda: 0, now=lambda: 1.0)
        await owners.look_up(Owner("ml", reference))
    await asyncio.gather(*wire.connections)
    server.close()
    await server.wait_closed()


@given(reference=references)
@example(reference=OwnerReference(api_version="v1", kind="../../pods#", name="x", uid="u", controller=True))
@example(reference=OwnerReference(api_version="v1", kind="Pod", name="?watch=true#", uid="u", controller=True))
@example(reference=OwnerReference(api_version="v1", kind="Pod", name="..", uid="u", controller=True))
@example(reference=OwnerReference(api_version="v1", kind="ConfigMap", name="../../kube-system/x", uid="u"))
def test_a_reference_asks_for_one_object_of_a_known_kind_or_for_nothing(reference: OwnerReference) -> None:
    wire = Wire()
    asyncio.run(look_up(wire, reference))

    lines = [request.split("\r\n")[0] for request in wire.requests]
    assert all(request.count("\r\n\r\n") == 1 and request.endswith("\r\n\r\n") for request in wire.requests)
    objects = [found[1] for line in lines if (found := OBJECT.fullmatch(line))]
    assert len(objects) <= 1
    assert all(DISCOVERY.fullmatch(line) or OBJECT.fullmatch(line) for line in lines)
    assert all(unquote(name) == reference.name and name not in (".", "..") for name in objects)
    if not can_exist(reference):
        assert lines == [], "not even discovery is asked about what cannot exist"
    else:
        assert bool(objects) == (reference.kind in KINDS.get(reference.api_version, {}))
