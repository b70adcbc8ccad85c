"""Who is let in, as files say at this moment: what a web configuration comes to once its files are read."""

import hashlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputally.files.credentials import show, token, trust
from gputally.files.reread import Files
from gputally.model.web_config import ClientAuth, WebConfig, WebTls

_VERIFY: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


class AccessPolicy(Struct, frozen=True, kw_only=True):
    """Who comes in, and how. By default everyone does, without encryption.

    `names` are those of which a client's certificate must carry one. `passwords` are bcrypt hashes by user, `tokens`
    users by the digest of their token: no secret is kept. A user in `tenants` is shown only what is theirs.
    """

    tls: ssl.SSLContext | None = None
    names: frozenset[str] = frozenset()
    headers: Mapping[str, str] = {}
    passwords: Mapping[str, str] = {}
    tokens: Mapping[bytes, str] = {}
    tenants: Mapping[str, frozenset[str]] = {}

    @property
    def asks(self) -> bool:
        """Whether there are users, so that nobody else comes in."""
        return bool(self.passwords or self.tokens)

    @property
    def scheme(self) -> str:
        """That of its URLs."""
        return "https" if self.tls else "http"


def door(config: WebConfig, files: Files) -> AccessPolicy:
    """What the configuration comes to. Raises: ConfigError for a file that cannot be used."""
    return AccessPolicy(
        tls=_context(config.tls, files) if config.tls else None,
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
    """By which a token is known; tokens are long and random, so nobody finds one by its digest."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()


def _context(tls: WebTls, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion[tls.oldest.replace("TLS1", "TLSv1_")]
    context.maximum_version = ssl.TLSVersion[tls.newest.replace("TLS1", "TLSv1_")]
    show(context, Path(tls.certificate), Path(tls.key), files, role="cert_file, key_file")
    if tls.authority:
        trust(context, Path(tls.authority), files, role="client_ca_file")
    context.verify_mode = _VERIFY[tls.client_auth]
    return context
