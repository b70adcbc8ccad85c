"""Credentials of the control plane's clients and servers, created for each start."""

import base64
import json
import secrets
from pathlib import Path

# RFC 5915: SEQUENCE { 1, OCTET STRING (32 bytes), [0] prime256v1 }; the public half may be left out.
EC_KEY_HEAD = bytes.fromhex("30310201010420")
EC_KEY_TAIL = bytes.fromhex("a00a06082a8648ce3d030107")

GROUPS = {
    "admin": "system:masters",
    "gputally": "",  # has exactly the permissions that a test binds to it
}


class Credentials:
    """A token and kubeconfig for each user, and the key that signs ServiceAccount tokens."""

    def __init__(self, folder: Path, *, server: str, ca_file: Path) -> None:
        self.folder = folder
        self.tokens = {user: secrets.token_hex(16) for user in GROUPS}
        self.token_file = folder / "tokens.csv"
        self.token_file.write_text("".join(f'{self.tokens[user]},{user},{user},"{GROUPS[user]}"\n' for user in GROUPS))
        self.signing_key = folder / "service-accounts.key"
        self.signing_key.write_text(elliptic_curve_key())
        for user, token in self.tokens.items():
            self.kubeconfig(user).write_text(json.dumps(kubeconfig(server, ca_file, token)))

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig file of `user`."""
        return self.folder / f"{user}.kubeconfig"


def kubeconfig(server: str, ca_file: Path, token: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }


def elliptic_curve_key() -> str:
    """A private key in PEM, without a cryptography package: nearly any 32 bytes are a valid key."""
    encoded = base64.b64encode(EC_KEY_HEAD + secrets.token_bytes(32) + EC_KEY_TAIL).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}\n-----END EC PRIVATE KEY-----\n"
