"""The access policy: a web configuration with the contents of the files that it names, reloaded when they change."""

import hashlib
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputally.files.credentials import Files, Reread, expiry_s, load_certificate, token, trust_authority
from gputally.model.web_config import ClientAuth, WebConfig, WebTls

_VERIFY: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


class AccessPolicy(Struct, frozen=True, kw_only=True):
    """Who has access, and how. By default everyone has access, without encryption.

    A client's certificate must have one of `names`, if there are any. `passwords` are bcrypt hashes by user, `tokens`
    users by the digest of their token: no secret is stored. A user in `tenants` sees only the data of these tenants.
    `expires_s` is when the server certificate expires, in seconds since 1970.
    """

    tls: ssl.SSLContext | None = None
    expires_s: int | None = None
    names: frozenset[str] = frozenset()
    headers: Mapping[str, str] = {}
    passwords: Mapping[str, str] = {}
    tokens: Mapping[bytes, str] = {}
    tenants: Mapping[str, frozenset[str]] = {}

    @property
    def requires_user(self) -> bool:
        """Whether there are users, so that all other requests are rejected."""
        return bool(self.passwords or self.tokens)

    @property
    def scheme(self) -> str:
        """The scheme of the process' URLs."""
        return "https" if self.tls else "http"


def access_policy(config: WebConfig, files: Files) -> AccessPolicy:
    """The policy of a configuration. Raises: ConfigError for a file that cannot be used."""
    return AccessPolicy(
        tls=_context(config.tls, files) if config.tls else None,
        expires_s=expiry_s(Path(config.tls.certificate), files) if config.tls else None,
        names=config.tls.names if config.tls else frozenset(),
        headers=config.headers,
        passwords=config.passwords,
        tokens={
            digest(token(Path(path), files, role=f"bearer_token_files.{user}")): user
            for user, path in config.token_files.items()
        },
        tenants=config.tenants,
    )


def digest(secret: str) -> bytes:
    """Identifies a token; tokens are long and random, so they cannot be derived from their digests."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()


def _context(tls: WebTls, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion[tls.oldest.replace("TLS1", "TLSv1_")]
    context.maximum_version = ssl.TLSVersion[tls.newest.replace("TLS1", "TLSv1_")]
    load_certificate(context, Path(tls.certificate), Path(tls.key), files, role="cert_file, key_file")
    if tls.authority:
        trust_authority(context, Path(tls.authority), files, role="client_ca_file")
    context.verify_mode = _VERIFY[tls.client_auth]
    return context


def policy_source(path: Path | None) -> Callable[[], AccessPolicy]:
    """The access policy of the web configuration at `path`; without it, everything is allowed. Raises: ConfigError."""
    return Reread(lambda files: _load_policy(path, files)) if path else AccessPolicy


def own_token(path: Path | None, page: str, *, role: str) -> dict[str, Callable[[], str]]:
    """The token that `page` requires, from the file at `path`, if any. Raises: ConfigError."""
    return {page: Reread(lambda files: token(path, files, role=role))} if path else {}


def _load_policy(path: Path, files: Files) -> AccessPolicy:
    from gputally.config.web_file import read_web_config  # noqa: PLC0415 - an agent without such a file needs no YAML

    return access_policy(read_web_config(files.of(path)), files)
