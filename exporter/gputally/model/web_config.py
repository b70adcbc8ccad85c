"""Who may ask this process for what, and how it proves who it is: what a web configuration file says.

Paths are as they are to be opened.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class ClientAuth(StrEnum):
    """Which certificates clients show, in the words of Go's crypto/tls."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


class TlsVersion(StrEnum):
    """What is offered; older versions are broken."""

    TLS12 = "TLS12"
    TLS13 = "TLS13"


class WebTls(Struct, frozen=True, kw_only=True):
    """HTTPS. With `names`, a client's certificate must carry one of them (DNS, IP address, e-mail or URI)."""

    certificate: str
    key: str
    client_auth: ClientAuth = ClientAuth.NONE
    authority: str = ""
    names: frozenset[str] = frozenset()
    oldest: TlsVersion = TlsVersion.TLS12
    newest: TlsVersion = TlsVersion.TLS13


class WebConfig(Struct, frozen=True, kw_only=True):
    """`passwords` are bcrypt hashes and `token_files` files, both by user; without any user everyone is answered.

    A user in `tenants` is shown what belongs to these tenants, and nothing else.
    """

    tls: WebTls | None = None
    headers: Mapping[str, str] = {}
    passwords: Mapping[str, str] = {}
    token_files: Mapping[str, str] = {}
    tenants: Mapping[str, frozenset[str]] = {}
