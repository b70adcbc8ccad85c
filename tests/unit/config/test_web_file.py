"""A web configuration in the format of exporter-toolkit, and ours beside it."""

from pathlib import Path

import pytest

from gputally.config.web_file import read_web_config
from gputally.errors import ConfigError
from gputally.model.web_config import ClientAuth, TlsVersion, WebConfig, WebTls

HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"
TLS = "tls_server_config: {cert_file: a.crt, key_file: /keys/a.key"


def read(folder: Path, text: str) -> WebConfig:
    file = folder / "web.yml"
    file.write_text(text)
    return read_web_config(file)


def test_every_field_is_read_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = f"""
tls_server_config:
  cert_file: a.crt
  key_file: /keys/a.key
  client_ca_file: sub/ca.crt
  client_auth_type: RequireAndVerifyClientCert
  client_allowed_sans: [prometheus.monitoring, 10.0.0.7]
  min_version: TLS13
  max_version: TLS13
http_server_config:
  headers:
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  anna: {HASH}
  "anna b@example.com": {HASH}
bearer_token_files:
  prometheus: token
tenants:
  anna: [vision, speech]
"""

    assert read(tmp_path, text) == WebConfig(
        tls=WebTls(
            certificate=f"{tmp_path}/a.crt",
            key="/keys/a.key",
            client_auth=ClientAuth.REQUIRED,
            authority=f"{tmp_path}/sub/ca.crt",
            names=frozenset({"prometheus.monitoring", "10.0.0.7"}),
            oldest=TlsVersion.TLS13,
        ),
        headers={"Strict-Transport-Security": "max-age=31536000"},
        passwords={"anna": HASH, "anna b@example.com": HASH},
        token_files={"prometheus": f"{tmp_path}/token"},
        tenants={"anna": frozenset({"vision", "speech"})},
    )


def test_the_sample_of_exporter_toolkit_is_understood_but_for_its_rate_limit(tmp_path: Path) -> None:
    text = f"""
tls_server_config:
  cert_file: server.crt
  key_file: server.key
basic_auth_users:
  alice: {HASH}
  bob: {HASH}
"""
    assert read(tmp_path, text).passwords.keys() == {"alice", "bob"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tls_config: {a: b}", "tls_config: unknown field; did you mean 'tls_server_config'?"),
        ("basic_auth: {a: b}", "basic_auth: unknown field; did you mean 'basic_auth_users'?"),
        ("rate_limit: {burst: 20}", "rate_limit: is not supported: --web.max-requests limits scrapes"),
        ("tls_server_config: {cert_file: a}", "tls_server_config.key_file: is missing; specify the key"),
        (TLS + ", cert_fil: b}", "tls_server_config.cert_fil: unknown field; did you mean 'cert_file'?"),
        (TLS + ", cert: b}", "tls_server_config.cert: is not supported, as OpenSSL reads certificates from files"),
        (TLS + ", key: b}", "tls_server_config.key: is not supported"),
        (TLS + ", client_ca: b}", "tls_server_config.client_ca: is not supported"),
        (TLS + ", cipher_suites: [b]}", "tls_server_config.cipher_suites: is not supported: OpenSSL's defaults"),
        (TLS + ", curve_preferences: [b]}", "tls_server_config.curve_preferences: is not supported"),
        (TLS + ", min_version: TLS11}", "tls_server_config.min_version: unknown 'TLS11'; use TLS12 or TLS13"),
        (TLS + ", min_version: TLS13, max_version: TLS12}", "tls_server_config.max_version: is below min_version"),
        (TLS + ", client_ca_file: b}", "client_ca_file: has no effect; set client_auth_type: RequireAndVerify"),
        (TLS + ", client_auth_type: VerifyClientCertIfGiven}", "client_auth_type: has no CA; specify the CA"),
        (TLS + ", client_auth_type: RequestClientCert}", "client_auth_type: RequestClientCert accepts any cert"),
        (TLS + ", client_auth_type: RequireAnyClientCert}", "client_auth_type: RequireAnyClientCert accepts any"),
        (TLS + ", client_auth_type: Always}", "client_auth_type: unknown 'Always'; use NoClientCert, Verify"),
        (TLS + ", client_allowed_sans: [b]}", "client_allowed_sans: requires client_auth_type: RequireAndVerify"),
        ("http_server_config: {http2: false}", "http_server_config.http2: is not supported: responses are HTTP/1.1"),
        ("http_server_config: {headers: {X-A: b}}", "http_server_config.headers.X-A: unknown field"),
        ("http_server_config: {headers: {X-Frame-Options: all}}", "X-Frame-Options: unknown 'all'; use deny or"),
        (
            'http_server_config: {headers: {Content-Security-Policy: "a\\r\\nSet-Cookie: b"}}',
            "Content-Security-Policy: contains other than printable ASCII",
        ),
        ("basic_auth_users: {a: hunter2}", "basic_auth_users.a: is not a bcrypt hash; use what `htpasswd -nBC 10"),
        ("basic_auth_users: {a: " + HASH.replace("$10$", "$18$") + "}", "a: has a cost outside 4 to 14"),
        ('basic_auth_users: {"a:b": ' + HASH + "}", "is not a valid user name; remove colons"),
        ("basic_auth_users: {}", "basic_auth_users: is an empty mapping; use users in the form `name: value`"),
        ("bearer_token_files: {a: ''}", "bearer_token_files.a: is empty; add a value"),
        (
            f"basic_auth_users: {{a: {HASH}}}\nbearer_token_files: {{a: token}}",
            "bearer_token_files: 'a' is also in basic_auth_users; rename one of them",
        ),
        ("tenants: {a: [b]}", "tenants: there is no user 'a' in basic_auth_users or bearer_token_files; add one"),
        (f"basic_auth_users: {{a: {HASH}}}\ntenants: {{a: []}}", "tenants.a: is an empty list; use a list"),
        ("", "is empty; start with `tls_server_config:` or `basic_auth_users:`"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_remedy(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        read(tmp_path, text)

    [found] = told.value.problems
    assert problem in str(found)
    assert "hunter2" not in str(found)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        read(tmp_path, "basic_auth_users: {a: b, c: d}\ntls_server_config: {cert_file: a}\n")

    assert len(told.value.problems) == 3
