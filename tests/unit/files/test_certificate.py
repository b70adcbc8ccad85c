"""When certificates expire, as openssl says it."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gputally.files.credentials import Files, expiry_s

DAY_S = 86_400


def certificate(path: Path, *options: str) -> int:
    """Create a self-signed certificate; returns its expiry as openssl reports it."""
    subject = ["-subj", "/CN=gputally.test", "-keyout", str(path.with_suffix(".key")), "-out", str(path)]
    subprocess.run(["openssl", "req", "-x509", "-nodes", *options, *subject], check=True, capture_output=True)
    command = ["openssl", "x509", "-noout", "-enddate", "-in", str(path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return int(datetime.strptime(shown, "notAfter=%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize("key", [("-newkey", "rsa:2048"), ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")])
@pytest.mark.parametrize("days", [1, 90, 365 * 40])  # the last is after 2049, where the format of the time changes
def test_it_is_what_openssl_says(tmp_path: Path, key: tuple[str, ...], days: int) -> None:
    expected = certificate(tmp_path / "a.pem", *key, "-days", str(days))

    assert expiry_s(tmp_path / "a.pem", Files()) == expected
    about = datetime.now(UTC) + timedelta(days=days)
    assert abs(expected - about.timestamp()) < DAY_S


def test_a_chain_expires_with_its_first_certificate(tmp_path: Path) -> None:
    leaf = tmp_path / "leaf.pem"
    certificate(leaf, "-newkey", "rsa:2048", "-days", "90")
    soonest = certificate(tmp_path / "ca.pem", "-newkey", "rsa:2048", "-days", "7")

    leaf.write_text(leaf.read_text() + (tmp_path / "ca.pem").read_text())

    assert expiry_s(leaf, Files()) == soonest


@pytest.mark.parametrize(
    "text",
    ["", "no certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"],
    ids=["empty", "other text", "truncated"],
)
def test_what_is_no_certificate_has_no_expiry(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.pem").write_text(text)

    assert expiry_s(tmp_path / "a.pem", Files()) is None
    assert expiry_s(tmp_path / "missing.pem", Files()) is None
