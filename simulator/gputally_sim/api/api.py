"""The HTTP API of the registry: routes, verbs and errors as in a Kubernetes API server."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
from aiohttp import hdrs, web

from gputally_sim.agenda import Agenda
from gputally_sim.api import encoding, refusals
from gputally_sim.api.discovery import discovery
from gputally_sim.api.faults import Faults
from gputally_sim.api.listing import Lister
from gputally_sim.api.registry import Registry
from gputally_sim.api.requests import ListOptions, Target, parse_options, parse_path, wants_metadata_only
from gputally_sim.api.resources import EVENTS
from gputally_sim.api.store import Stored
from gputally_sim.api.watching import Watch
from gputally_sim.clock import SimClock
from gputally_sim.control.recorder import stored_view
from gputally_sim.documents import Doc
from gputally_sim.instants import http_date

_JSON = "application/json"
_MERGE_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
_MAX_BODY = 3 * 2**20
"""The real server's limit, which follows from etcd's request limit."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """One server. `token` "" disables authentication; `bookmark_s` is the bookmark interval in real seconds."""

    def __init__(
        self, registry: Registry, clock: SimClock, faults: Faults, *, token: str = "", bookmark_s: float = 60.0
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._faults = faults
        self._token = token
        self._bookmark_s = bookmark_s
        self._lister = Lister(registry.store)
        self._watches: set[Watch] = set()

    def application(self) -> web.Application:
        """The web application with all routes."""
        app = web.Application(middlewares=[_answer_status], client_max_size=_MAX_BODY)
        for path in ("/readyz", "/healthz", "/livez"):
            app.router.add_get(path, _ok)
        app.router.add_get("/version", _version)
        app.router.add_get("/{tail:api|apis}", self._discover)
        for verb, handler in self._verbs().items():
            app.router.add_route(verb, "/{tail:.+}", handler)
        app.on_response_prepare.append(self._date)
        app.on_shutdown.append(self._end_watches)
        return app

    def _verbs(self) -> dict[str, Handler]:
        return {
            "GET": self._get,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }

    async def _end_watches(self, _: web.Application) -> None:
        for watch in tuple(self._watches):
            watch.end()
        self._faults.resume()

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        """Set the Date header to the simulated time plus an injected error."""
        self._agenda.catch_up(self._clock.now_us())
        response.headers[hdrs.DATE] = http_date(self._agenda.now_us + self._faults.next_misdate())

    async def _discover(self, request: web.Request) -> web.StreamResponse:
        return _json(discovery(request.path))

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if found := discovery(request.path):
            return _json(found)
        target = parse_path(request.path)
        options = parse_options(target, request.query)
        verb = "watch" if options.watch else "get" if target.name else "list"
        self._admit(request, target, verb)
        partial = wants_metadata_only(request.headers.get("Accept", ""))
        if options.watch:
            return await self._watch(request, target, options, partial=partial)
        if target.name:
            return self._object(target, self._registry.read(target.resource.plural, target.key), partial=partial)
        if not options.limit and not options.selective:
            await self._faults.listing(target.resource.plural)
        return _body(self._lister.page(target.resource, options, partial=partial))

    async def _post(self, request: web.Request) -> web.StreamResponse:
        target = parse_path(request.path)
        self._admit(request, target, "create")
        doc = await _document(request)
        if target.subresource == "binding" and target.resource.plural == "pods":
            self._registry.bind(target.key, _bound_to(doc))
            return _body(encoding.encode(_SUCCESS), HTTPStatus.CREATED)
        if target.name:
            raise refusals.method_not_allowed()
        namespace = target.namespace
        stored = self._registry.create(target.resource.plural, _as_stored(target, doc), namespace)
        return self._object(target, stored, code=HTTPStatus.CREATED)

    async def _put(self, request: web.Request) -> web.StreamResponse:
        target = parse_path(request.path)
        self._admit(request, target, "update")
        doc = _as_stored(target, await _document(request))
        if not target.name or target.subresource:
            raise refusals.method_not_allowed()
        return self._object(target, self._registry.replace(target.resource.plural, target.key, doc))

    async def _patch(self, request: web.Request) -> web.StreamResponse:
        target = parse_path(request.path)
        self._admit(request, target, "patch")
        change = _as_stored(target, await _document(request))
        if request.content_type not in _MERGE_PATCHES:
            raise refusals.unsupported_media_type(_MERGE_PATCHES[0])
        if not target.name or target.subresource not in ("", "status"):
            raise refusals.method_not_allowed()
        status = target.subresource == "status"
        return self._object(target, self._registry.patch(target.resource.plural, target.key, change, status=status))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        target = parse_path(request.path)
        self._admit(request, target, "delete")
        options = await _document(request) if request.can_read_body else {}
        if not target.name or target.subresource:
            raise refusals.method_not_allowed()
        stored = self._registry.delete(
            target.resource.plural,
            target.key,
            grace_seconds=_grace(request.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))),
            uid=(options.get("preconditions") or {}).get("uid", ""),
        )
        return self._object(target, stored)

    def _admit(self, request: web.Request, target: Target, verb: str) -> None:
        """Reject unauthorized requests and injected faults; then advance the simulated time to the clock."""
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            raise refusals.unauthorized()
        if code := self._faults.next_refusal():
            raise refusals.refused(code)
        if target.resource.served in self._faults.forbidden:
            raise refusals.access_denied(target.resource, verb, target.namespace)
        self._agenda.catch_up(self._clock.now_us())

    @property
    def _agenda(self) -> Agenda:
        return self._registry.agenda

    async def _watch(
        self, request: web.Request, target: Target, options: ListOptions, *, partial: bool
    ) -> web.StreamResponse:
        self._check_streaming(options)
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        watch = Watch(self._registry.store, target.resource, options, partial=partial)
        self._watches.add(watch)
        try:
            await response.prepare(request)
            await watch.serve(response, watch.pipe(request.transport), self._faults, self._bookmark_s)
        except ConnectionError:
            pass  # the client disconnected, or a fault dropped the connection
        finally:
            watch.close()
            self._watches.discard(watch)
        return response

    def _check_streaming(self, options: ListOptions) -> None:
        text = ""
        if options.initial_events and not self._faults.streaming_lists:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        elif options.initial_events and options.match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        elif options.match and not options.initial_events:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        if text:
            raise refusals.invalid("ListOptions.meta.k8s.io", "", f"sendInitialEvents: Forbidden: {text}")

    def _object(
        self, target: Target, stored: Stored, *, partial: bool = False, code: int = HTTPStatus.OK
    ) -> web.StreamResponse:
        body = encoding.metadata_only(stored) if partial else encoding.typed(target.resource, stored)
        return _body(body, code)


@web.middleware
async def _answer_status(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except refusals.StatusError as error:
        retry = {"Retry-After": "1"} if error.code == HTTPStatus.TOO_MANY_REQUESTS else {}
        return _body(encoding.encode(error.document()), error.code, retry)
    except web.HTTPNotFound:
        return _body(encoding.encode(refusals.no_such_resource().document()), HTTPStatus.NOT_FOUND)


_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": HTTPStatus.CREATED}


async def _ok(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


async def _version(_: web.Request) -> web.StreamResponse:
    return _json({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"})


def _json(document: Doc | None) -> web.StreamResponse:
    return _body(encoding.encode(document))


def _body(body: bytes, code: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> web.StreamResponse:
    return web.Response(body=body, status=code, content_type=_JSON, headers=headers)


async def _document(request: web.Request) -> Doc:
    try:
        document = msgspec.json.decode(await request.read())
    except msgspec.DecodeError as error:
        raise refusals.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(document, dict):
        raise refusals.bad_request("the body must be a JSON object")
    return document


def _as_stored(target: Target, doc: Doc) -> Doc:
    return stored_view(doc) if target.resource is EVENTS else doc


def _bound_to(binding: Doc) -> str:
    name = (binding.get("target") or {}).get("name")
    if not name:
        raise refusals.invalid("Binding", "", "target.name: Required value")
    return str(name)


def _grace(text: object) -> int | None:
    try:
        return None if text is None else int(str(text))
    except ValueError as error:
        raise refusals.bad_request(f"gracePeriodSeconds: {error}") from error
