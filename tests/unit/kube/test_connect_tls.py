"""Certificates on both sides of a connection."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally.errors import ApiUnreachable, ConfigError
from gputally.kube.connection import Choice, connect, read_access
from gputally.model.kube.meta import OwnerMeta
from tests.fakes.certificates import Certificates
from tests.fakes.kubeconfigs import headers_of, kubeconfig
from tests.fakes.scripted_api import ScriptedApi, serving

pytestmark = pytest.mark.usefixtures("nowhere")


@pytest.fixture
async def secure(certificates: Certificates) -> AsyncIterator[ScriptedApi]:
    async with serving(certificates.server_context(wants_client=True)) as scripted:
        yield scripted


def complaint(choice: Choice) -> str:
    """What the user reads."""
    with pytest.raises(ConfigError) as caught:
        read_access(choice)
    return str(caught.value)


@pytest.mark.parametrize("inline", [True, False])
async def test_a_client_certificate_of_a_kubeconfig_opens_the_door(
    secure: ScriptedApi, certificates: Certificates, tmp_path: Path, *, inline: bool
) -> None:
    files = {
        "certificate-authority": certificates.authority,
        "client-certificate": certificates.certificate("client"),
        "client-key": certificates.key("client"),
    }
    inlined = {f"{name}-data": base64.b64encode(file.read_bytes()).decode() for name, file in files.items()}
    parts = inlined if inline else {name: str(file) for name, file in files.items()}
    cluster = {name: parts.pop(name) for name in list(parts) if name.startswith("certificate-authority")}
    path = kubeconfig(tmp_path, secure.url, parts, **cluster)

    async with connect(Choice(kubeconfig=path)) as api:
        assert "Authorization" not in await headers_of(api, secure)


async def test_a_server_signed_by_a_stranger_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    async with serving(certificates.server_context(wants_client=False)) as server:
        path = kubeconfig(tmp_path, server.url, {"token": "abc"})

        async with connect(Choice(kubeconfig=path)) as api:
            with pytest.raises(ApiUnreachable, match="certificate verify failed"):
                await api.get_json("/version", {}, OwnerMeta)


@pytest.mark.parametrize("name", ["kubernetes.default", "somebody.else"])
async def test_the_server_is_checked_against_the_name_the_kubeconfig_gives(
    certificates: Certificates, tmp_path: Path, name: str
) -> None:
    async with serving(certificates.server_context(wants_client=False)) as server:
        authority = str(certificates.authority)
        path = kubeconfig(tmp_path, server.url, {"token": "abc"}, certificate_authority=authority, tls_server_name=name)

        async with connect(Choice(kubeconfig=path)) as api:
            if name == "kubernetes.default":
                assert await headers_of(api, server)
            else:
                with pytest.raises(ApiUnreachable, match=r"not valid for 'somebody\.else'"):
                    await api.get_json("/version", {}, OwnerMeta)


async def test_verification_can_be_turned_off(certificates: Certificates, tmp_path: Path) -> None:
    async with serving(certificates.server_context(wants_client=False)) as server:
        path = kubeconfig(tmp_path, server.url, {"token": "abc"}, insecure_skip_tls_verify=True)

        async with connect(Choice(kubeconfig=path)) as api:
            assert await headers_of(api, server)


def test_an_authority_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    path = kubeconfig(tmp_path, "https://host", {"token": "abc"}, certificate_authority="ca.crt")

    assert f"{path}: certificate-authority: not a PEM certificate" in complaint(Choice(kubeconfig=path))


def test_a_key_of_another_certificate_is_told(certificates: Certificates, tmp_path: Path) -> None:
    user = {
        "client-certificate": str(certificates.certificate("client")),
        "client-key": str(certificates.key("server")),
    }
    path = kubeconfig(tmp_path, "https://host", user)

    assert f"{path}: client-certificate: certificate and key do not match" in complaint(Choice(kubeconfig=path))


def test_no_key_of_a_kubeconfig_stays_behind_in_a_file(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("kubernetes.config.kube_config._temp_files", {})  # it remembers files by content
    data = {
        f"client-{name}-data": base64.b64encode((certificates.folder / file).read_bytes()).decode()
        for name, file in (("certificate", "client.crt"), ("key", "client.key"))
    }

    read_access(Choice(kubeconfig=kubeconfig(tmp_path, "https://host", data)))

    assert list(scratch.iterdir()) == []
