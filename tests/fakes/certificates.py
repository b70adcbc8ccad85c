"""A temporary CA with a server and a client certificate, created by openssl."""

import ssl
import subprocess
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Certificates:
    """PEM files: the CA `authority`, and certificate and key of `server` (for 127.0.0.1) and `client`."""

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "ca.crt"
        self.folder = folder
        self._sign("ca", "/CN=authority", authority=None)
        self._sign("server", "/CN=apiserver", authority=self.authority)
        self._sign("client", "/CN=gputally", authority=self.authority)

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def renew(self, name: str) -> None:
        """Replace certificate and key of `name`."""
        self._sign(name, f"/CN={name}", authority=self.authority)

    def self_signed(self, name: str) -> None:
        """Create a self-signed certificate."""
        self._sign(name, f"/CN={name}", authority=None)

    def expired(self, name: str) -> None:
        """Create a certificate signed by the CA that expired yesterday."""
        request, key = self.folder / f"{name}.csr", self.key(name)
        openssl("req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signer = ("-CA", self.authority, "-CAkey", self.key("ca"))
        openssl("x509", "-req", "-in", request, *signer, "-days", "-1", "-out", self.certificate(name))

    def client_context(self, name: str = "") -> ssl.SSLContext:
        """A client's TLS context, with the certificate of that name if given."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if name:
            context.load_cert_chain(self.certificate(name), self.key(name))
        return context

    def server_context(self, *, wants_client: bool) -> ssl.SSLContext:
        """The API server's TLS context; `wants_client` requires a client certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority))
        context.load_cert_chain(self.certificate("server"), self.key("server"))
        context.verify_mode = ssl.CERT_REQUIRED if wants_client else ssl.CERT_NONE
        return context

    def _sign(self, name: str, subject: str, *, authority: Path | None) -> None:
        names = ("-addext", "subjectAltName=IP:127.0.0.1,DNS:kubernetes.default") if authority else ()
        signer = ("-CA", str(authority), "-CAkey", str(self.key("ca"))) if authority else ()
        files = ("-out", str(self.certificate(name)), "-keyout", str(self.key(name)))
        openssl("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", subject, *names, *signer, *files)


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
