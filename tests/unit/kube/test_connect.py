"""Connections as files and environment describe them, tried against real servers."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gputally.errors import ApiUnreachable, ConfigError
from gputally.kube.connection import Choice, connect, read_access
from gputally.model.kube.meta import OwnerMeta
from tests.fakes.certificates import Certificates
from tests.fakes.kubeconfigs import headers_of, kubeconfig, plugin
from tests.fakes.scripted_api import ScriptedApi, serving

pytestmark = pytest.mark.usefixtures("nowhere")


def complaint(choice: Choice) -> str:
    """What the user reads."""
    with pytest.raises(ConfigError) as caught:
        read_access(choice)
    return str(caught.value)


async def test_a_token_of_a_kubeconfig_is_sent(server: ScriptedApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, server.url, {"token": "abc"})

    async with connect(Choice(kubeconfig=path)) as api:
        assert (await headers_of(api, server))["Authorization"] == "Bearer abc"


async def test_the_variable_kubeconfig_may_list_several_files(
    server: ScriptedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path / "b", server.url, {"token": "abc"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'gone'}{os.pathsep}{path}")

    async with connect(Choice(context="x")) as api:
        assert api.server == server.url


async def test_the_kubeconfig_in_the_home_folder_is_found(server: ScriptedApi, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    kubeconfig(tmp_path / "home" / ".kube", server.url, {"token": "abc"})

    async with connect(Choice()) as api:
        assert api.server == server.url


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, ""),
        ({"username": "ann", "password": "secret"}, "Basic YW5uOnNlY3JldA=="),
        ({"token": "abc", "username": "ann"}, "Bearer abc"),
        ({"token": "abc", "exec": {"apiVersion": "v1", "command": "/no/such"}}, "Bearer abc"),
    ],
)
def test_what_a_kubeconfig_spells_out_is_sent(tmp_path: Path, user: dict[str, str], header: str) -> None:
    access = read_access(Choice(kubeconfig=kubeconfig(tmp_path, "http://host", user)))

    assert access.authorization() == header


async def test_a_token_file_that_was_replaced_is_read_anew(server: ScriptedApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old\n")
    path = kubeconfig(tmp_path, server.url, {"tokenFile": "token", "token": "none"})

    async with connect(Choice(kubeconfig=path)) as api:
        first = await headers_of(api, server)
        (tmp_path / "token").write_text("new\n")
        second = await headers_of(api, server)

    assert [headers["Authorization"] for headers in (first, second)] == ["Bearer old", "Bearer new"]


async def test_a_token_file_that_is_gone_leaves_the_server_unreachable(server: ScriptedApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    path = kubeconfig(tmp_path, server.url, {"tokenFile": "token"})

    async with connect(Choice(kubeconfig=path)) as api:
        (tmp_path / "token").unlink()
        with pytest.raises(ApiUnreachable, match=r"users\[u\]: .*No such file"):
            await api.get_json("/version", {}, OwnerMeta)


async def test_an_exec_plugin_runs_once_while_its_token_is_good(server: ScriptedApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, server.url, plugin(tmp_path, "2999-01-01T00:00:00Z"))

    async with connect(Choice(kubeconfig=path)) as api:
        seen = [(await headers_of(api, server))["Authorization"] for _ in range(2)]

    assert seen == ["Bearer token-1", "Bearer token-1"]


def test_where_plugins_cannot_run_a_login_by_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)  # as if it were not installed
    path = kubeconfig(tmp_path, "https://127.0.0.1:1", plugin(tmp_path, ""))

    assert complaint(Choice(kubeconfig=path)) == (
        f"{path}: users[u].user: needs the Python package kubernetes, which is missing; "
        "use a token, a certificate or a ServiceAccount"
    )


async def test_an_exec_plugin_runs_again_when_its_token_has_expired(server: ScriptedApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, server.url, plugin(tmp_path, "2020-01-01T00:00:00Z"))

    async with connect(Choice(kubeconfig=path)) as api:
        seen = [(await headers_of(api, server))["Authorization"] for _ in range(2)]

    assert seen == ["Bearer token-2", "Bearer token-3"]


@pytest.mark.parametrize(
    ("command", "text"),
    [("/no/such/plugin", "No such file or directory"), ("/bin/false", "process returned 1"), ("/bin/echo", "decode")],
)
def test_an_exec_plugin_that_fails_is_told_with_its_reason_and_nothing_is_logged(
    tmp_path: Path, command: str, text: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as before logging is set up
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}}
    path = kubeconfig(tmp_path, "http://host", user)

    message = complaint(Choice(kubeconfig=path))

    assert message.startswith(f"{path}: users[u].user.exec: ")
    assert text in message
    assert message.endswith(f"; run `{command}` by hand")
    assert logging.root.handlers == []
    assert capfd.readouterr() == ("", "")


def test_a_login_method_that_is_gone_from_kubernetes_is_not_taken_for_anonymous(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://host", {"auth-provider": {"name": "azure"}})

    assert "users[u].user.auth-provider: returns no credentials; replace it with the exec" in complaint(
        Choice(kubeconfig=path)
    )


async def test_inside_a_cluster_the_service_account_is_used_and_its_token_read_anew_when_it_was_replaced(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("old\n")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    async with serving(certificates.server_context(wants_client=False)) as server:
        host, _, port = server.url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)

        async with connect(Choice(service_account=tmp_path)) as api:
            first = await headers_of(api, server)
            (tmp_path / "token").write_text("new\n")
            second = await headers_of(api, server)

    assert [headers["Authorization"] for headers in (first, second)] == ["Bearer old", "Bearer new"]


def test_an_address_of_version_six_inside_a_cluster_is_put_in_brackets(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("any")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    assert read_access(Choice(service_account=tmp_path)).server == "https://[fd00::1]:443"


def test_a_service_account_without_its_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    assert complaint(Choice(service_account=tmp_path)).splitlines() == [
        f"{tmp_path / 'token'}: no such file",
        f"{tmp_path / 'ca.crt'}: no such file",
    ]


def test_no_cluster_at_all_is_told_with_what_to_do() -> None:
    assert complaint(Choice()) == (
        "kubeconfig: no kubeconfig found and not inside a cluster; set KUBECONFIG or specify a kubeconfig"
    )


def test_a_context_without_a_kubeconfig_is_told() -> None:
    assert complaint(Choice(context="prod")) == "context: 'prod' needs a kubeconfig, but none was found"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        ("http://10.1.2.3", "", "http://proxy:3128"),
        ("http://10.1.2.3", "10.0.0.0/8,.svc", None),
        ("http://api.svc", "10.0.0.0/8,.svc", None),
        ("http://192.168.0.1", "10.0.0.0/8,.svc", "http://proxy:3128"),
    ],
)
def test_a_proxy_of_the_environment_is_used_except_where_no_proxy_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, proxy: str | None
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)

    access = read_access(Choice(kubeconfig=kubeconfig(tmp_path, server, {"token": "abc"})))

    assert access.proxy == proxy


def test_the_proxy_of_a_kubeconfig_is_used_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    path = kubeconfig(tmp_path, "http://host", {"token": "abc"}, proxy_url="http://mine:3128")

    assert read_access(Choice(kubeconfig=path)).proxy == "http://mine:3128"


def test_the_kubernetes_package_is_loaded_only_for_credentials_that_a_program_gives(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://host", {"token": "abc"})
    code = (
        "import sys; from gputally.kube.connection import Choice, read_access;"
        f"read_access(Choice(kubeconfig={path!r})); sys.exit('kubernetes' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
