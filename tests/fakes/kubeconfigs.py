"""Kubeconfig files, and an exec plugin that counts its runs."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gputally.kube.api import Api
from gputally.model.kube.meta import OwnerMeta
from tests.fakes.scripted_api import ScriptedApi

PLUGIN = """\
#!{python}
import json, os, pathlib
count = pathlib.Path({folder!r}) / "count"
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
print(json.dumps({{
    "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {{"token": f"token-{{number}}", "expirationTimestamp": os.environ["EXPIRES"]}},
}}))
"""


def kubeconfig(folder: Path, server: str, user: Mapping[str, Any], **cluster: Any) -> str:  # noqa: ANN401 - any JSON
    """Write a kubeconfig with one context."""
    folder.mkdir(exist_ok=True)
    settings = {"server": server} | {name.replace("_", "-"): value for name, value in cluster.items()}
    document = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": settings}],
        "users": [{"name": "u", "user": dict(user)}],
    }  # fmt: skip
    (folder / "config").write_text(yaml.safe_dump(document))
    return str(folder / "config")


def plugin(folder: Path, expires: str) -> dict[str, Any]:
    """A user whose exec plugin returns a token with its run number."""
    script = folder / "plugin"
    script.write_text(PLUGIN.format(python=sys.executable, folder=str(folder)))
    script.chmod(0o755)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(script),
            "env": [{"name": "EXPIRES", "value": expires}],
        }
    }


async def headers_of(api: Api, server: ScriptedApi) -> Mapping[str, str]:
    """The headers that the server receives in a request."""
    answer = asyncio.create_task(api.get_json("/version", {}, OwnerMeta))
    request = await server.request()
    request.answer({"metadata": {}})
    await answer
    return request.headers
