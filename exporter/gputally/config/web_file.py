"""The web configuration file: TLS, users and headers, in the format of Prometheus' exporter-toolkit.

Source: github.com/prometheus/exporter-toolkit, docs/web-configuration.md. Extensions: `bearer_token_files`, `tenants`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gputally.config.document import load
from gputally.config.fields import Field, Parser, Section, value, values
from gputally.config.values import choice, member, tenant_name, text
from gputally.model.web_config import ClientAuth, TlsVersion, WebConfig, WebTls

_MOST_COST: Final = 14
"""One to two seconds for each wrong password; each increment doubles that."""
_HASH: Final = re.compile(r"\$2[aby]\$(?P<cost>\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
_USER: Final = re.compile(r"[^\x00-\x20:\x7f][^\x00-\x1f:\x7f]*")
_CHOICES: Final = {"X-Content-Type-Options": ("nosniff",), "X-Frame-Options": ("deny", "sameorigin")}
_LINES: Final = ("Content-Security-Policy", "Strict-Transport-Security", "X-XSS-Protection")
_NO_PEM: Final = "is not supported, as OpenSSL reads certificates from files; specify one with {}_file"
_OWN_CHOICE: Final = "is not supported: OpenSSL's defaults are used; remove it, or set min_version: TLS13"
_TLS_UNSUPPORTED: Final = {
    "cert": _NO_PEM.format("cert"),
    "key": _NO_PEM.format("key"),
    "client_ca": _NO_PEM.format("client_ca"),
    "cipher_suites": _OWN_CHOICE,
    "prefer_server_cipher_suites": _OWN_CHOICE,
    "curve_preferences": _OWN_CHOICE,
}
_HTTP_UNSUPPORTED: Final = {"http2": "is not supported: responses are HTTP/1.1; remove it"}
_UNSUPPORTED: Final = {
    "rate_limit": "is not supported: --web.max-requests limits scrapes, the bcrypt cost limits logins; remove it"
}


def read_web_config(path: Path) -> WebConfig:
    """The parsed file; relative paths start at its folder. Raises: ConfigError with all its problems."""
    root = load(path, start="`tls_server_config:` or `basic_auth_users:`")
    known = ("tls_server_config", "http_server_config", "basic_auth_users", "bearer_token_files", "tenants")
    section = _section(root, known, _UNSUPPORTED)
    found = WebConfig(
        tls=section.read("tls_server_config", _tls, None),
        headers=section.read("http_server_config", _headers, {}),
        passwords=section.read("basic_auth_users", _users(_hash), {}),
        token_files=section.read("bearer_token_files", _users(_path(root)), {}),
        tenants=section.read("tenants", _tenants, {}),
    )
    _check_users(section, found)
    root.raise_problems()
    return found


def _section(field: Field, known: tuple[str, ...], unsupported: Mapping[str, str]) -> Section:
    section = field.section(*known, *unsupported)
    for name in unsupported:
        if name in section:
            section[name].refuse(unsupported[name])
    return section


def _tls(field: Field) -> WebTls:
    known = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "client_allowed_sans")
    section = _section(field, (*known, "min_version", "max_version"), _TLS_UNSUPPORTED)
    path = value(_path(field))
    found = WebTls(
        certificate=section.require("cert_file", path, "specify the certificate (PEM)") or "",
        key=section.require("key_file", path, "specify the key of the certificate (PEM)") or "",
        authority=section.read("client_ca_file", path, ""),
        client_auth=section.read("client_auth_type", value(_client_auth), ClientAuth.NONE),
        names=frozenset(section.read("client_allowed_sans", values(text), ())),
        oldest=section.read("min_version", value(member(TlsVersion)), TlsVersion.TLS12),
        newest=section.read("max_version", value(member(TlsVersion)), TlsVersion.TLS13),
    )
    _check_clients(section, found)
    return found


def _check_clients(section: Section, tls: WebTls) -> None:
    """Report settings that request no client certificate, or that cannot verify one."""
    asked = tls.client_auth is not ClientAuth.NONE
    if asked and "client_ca_file" not in section:
        section["client_auth_type"].refuse("has no CA; specify the CA of client certificates with client_ca_file")
    if not asked and "client_ca_file" in section and "client_auth_type" not in section:
        section["client_ca_file"].refuse("has no effect; set client_auth_type: RequireAndVerifyClientCert")
    if tls.names and tls.client_auth is not ClientAuth.REQUIRED:
        section["client_allowed_sans"].refuse("requires client_auth_type: RequireAndVerifyClientCert")
    if tls.oldest > tls.newest:
        section["max_version"].refuse(f"is below min_version; use {tls.oldest}, or lower min_version")


def _client_auth(written: str) -> ClientAuth:
    if written in ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert"):
        raise ValueError(f"{written} accepts any certificate; use {ClientAuth.REQUIRED} or {ClientAuth.IF_GIVEN}")
    return member(ClientAuth)(written)


def _headers(field: Field) -> Mapping[str, str]:
    section = _section(field, ("headers",), _HTTP_UNSUPPORTED)
    return section.read("headers", _each_header, {})


def _each_header(field: Field) -> Mapping[str, str]:
    parsers: dict[str, Parser[str]] = {name: choice(options) for name, options in _CHOICES.items()}
    parsers |= dict.fromkeys(_LINES, _line)
    section = field.section(*parsers)
    return {name: section.read(name, value(parser), "") for name, parser in parsers.items() if name in section}


def _line(written: str) -> str:
    if not (written.isascii() and written.isprintable()):
        raise ValueError("contains other than printable ASCII; use one line of ASCII")
    return written


def _users(parser: Parser[str]) -> Callable[[Field], Mapping[str, str]]:
    def read(field: Field) -> Mapping[str, str]:
        found = {}
        for name, entry in field.pairs("use users in the form `name: value`"):
            if not _USER.fullmatch(name):
                entry.refuse("is not a valid user name; remove colons and control characters")
            found[name] = entry.parse(parser) or ""
        return found

    return read


def _hash(written: str) -> str:
    """A bcrypt hash. Error messages omit the text: it may be a plain password."""
    found = _HASH.fullmatch(written)
    if not found:
        raise ValueError("is not a bcrypt hash; use what `htpasswd -nBC 10 ''` prints after the colon")
    if not 4 <= int(found["cost"]) <= _MOST_COST:  # noqa: PLR2004 - bcrypt's minimum
        raise ValueError(f"has a cost outside 4 to {_MOST_COST}, which every wrong password would incur; use 10")
    return written


def _tenants(field: Field) -> Mapping[str, frozenset[str]]:
    return {user: frozenset(values(tenant_name)(entry)) for user, entry in field.pairs("add users, each with tenants")}


def _check_users(section: Section, config: WebConfig) -> None:
    for user in config.passwords.keys() & config.token_files.keys():
        section["bearer_token_files"].refuse(f"{user!r} is also in basic_auth_users; rename one of them")
    for user in config.tenants.keys() - config.passwords.keys() - config.token_files.keys():
        section["tenants"].refuse(f"there is no user {user!r} in basic_auth_users or bearer_token_files; add one")


def _path(field: Field) -> Parser[str]:
    """A parser of paths, relative to the folder of the file."""
    folder = Path(field.file).parent
    return lambda written: str(folder / text(written))
