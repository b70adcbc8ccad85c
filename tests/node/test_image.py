"""The image: what is in it, what is not, and how soon it works."""

import json
import logging
import struct
from pathlib import Path
from statistics import median

import pytest

from hack.image.application import PACKAGES
from tests.node.product_image import ProductImage

pytestmark = pytest.mark.node
logger = logging.getLogger(__name__)

NEVER_CHECKED = 1
"""In the flags of a compiled file: it has its source's hash, and is taken as it is."""
LARGEST_BYTES = 100 * 2**20
LONGEST_START_S = 1
MODULES_OF = "import json, sys; import gputally.{0}.{0}; print(json.dumps(sorted(sys.modules)))"
LOAD_ALL = """
import importlib, pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path("stdlib"), "lib-dynload")
for name in sorted({file.name.partition(".")[0] for file in folder.iterdir()}):
    importlib.import_module(name)
    print(name)
"""
DEMO = """
import contextlib, io
from gputally.cli import main
said = io.StringIO()
with contextlib.redirect_stderr(said):
    status = main(["demo"])
print(status, said.getvalue())
"""
AUTHORITIES = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"


def test_the_same_sources_make_the_same_image(image: ProductImage, tmp_path: Path) -> None:
    again = ProductImage.made(tmp_path)

    assert again.contents().items() ^ image.contents().items() == set()
    assert again.archive.read_bytes() == image.archive.read_bytes()


def test_it_has_no_program_but_python_and_gputally(image: ProductImage) -> None:
    folders = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
    programs = {file.name for folder in folders for file in (image.root / folder).glob("*")}
    packages = {file.name for file in (image.root / PACKAGES).iterdir()}

    assert programs == {"python3", "python3.11", "gputally"}
    assert packages.isdisjoint({"pip", "setuptools", "wheel", "kubernetes"})


def test_nothing_in_it_gives_or_needs_rights(image: ProductImage) -> None:
    members = image.members()

    assert {(each.uid, each.gid) for each in members} == {(0, 0)}
    assert [each.name for each in members if each.mode & 0o6000] == []
    assert [each.name for each in members if each.mode & 0o002 and not each.issym()] == ["tmp"]


def test_it_is_small(image: ProductImage) -> None:
    size = sum(each.size for each in image.members())

    logger.info("%.1f MiB of files", size / 2**20)
    assert size < LARGEST_BYTES


def test_every_source_is_compiled_for_good(image: ProductImage) -> None:
    sources = [*image.root.glob("usr/lib/python3.11/**/*.py"), *(image.root / PACKAGES).rglob("*.py")]
    compiled = [file.parent / "__pycache__" / f"{file.stem}.cpython-311.pyc" for file in sources]

    assert len(compiled) > 800
    assert {struct.unpack("<I", file.read_bytes()[4:8])[0] for file in compiled} == {NEVER_CHECKED}


def test_it_starts_at_once(image: ProductImage) -> None:
    runs = [image.run("/usr/local/bin/gputally", "--version") for _ in range(5)]

    logger.info("started within %.2f s", median(run.seconds for run in runs))
    assert runs[0].printed.startswith("gputally ")
    assert median(run.seconds for run in runs) < LONGEST_START_S


@pytest.mark.parametrize(
    ("command", "not_its"),
    [
        ("agent", {"bcrypt", "gputally.config", "gputally.ledger", "kubernetes", "sqlite3", "yaml"}),
        ("aggregator", {"bcrypt", "google", "grpc", "kubernetes", "pynvml"}),
    ],
)
def test_a_command_loads_nothing_of_the_other(image: ProductImage, command: str, not_its: set[str]) -> None:
    ran = image.run("/usr/bin/python3", "-c", MODULES_OF.format(command))

    logger.info("%s: imported within %.2f s", command, ran.seconds)
    assert not_its.isdisjoint(json.loads(ran.printed))


def test_the_demo_says_how_to_get_the_simulator_that_it_lacks(image: ProductImage) -> None:
    said = image.run("/usr/bin/python3", "-c", DEMO).printed

    assert said.startswith("2 gputally: Python package rich: is not installed")
    assert "pip install ./simulator" in said


def test_every_module_of_python_finds_its_libraries(image: ProductImage) -> None:
    assert {"_sqlite3", "_ssl", "_ctypes"} <= set(image.run("/usr/bin/python3", "-c", LOAD_ALL).printed.split())


def test_it_trusts_public_authorities(image: ProductImage) -> None:
    assert int(image.run("/usr/bin/python3", "-c", AUTHORITIES).printed) > 100
