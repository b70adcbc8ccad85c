"""The FinOps Foundation's own validator accepts our FOCUS files."""

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import step
from tests.unit.commands.from_ledger.test_report import ACCOUNTED, PODS
from tests.unit.commands.sample import Runner

pytestmark = pytest.mark.campaign

VALIDATOR = "focus-validator==2.2.1"
"""The newest version; its package contains the model of FOCUS 1.2 alone."""
BESIDE = "pyarrow<22"
"""It pins NumPy 1.26, which later versions cannot use."""
PYTHON = "python3.12"
"""The validator needs it; with Python 3.11, pip installs one for FOCUS 1.0."""
CRITERIA = (
    *("ACCOUNT_NAMING", "BILLING_BASED_ON_PROVISIONED_RESOURCES", "MULTIPLE_BILLING_ACCOUNT_TYPES"),
    *("MULTIPLE_PRICING_CATEGORIES", "MULTIPLE_SUB_ACCOUNT_TYPES", "NEGOTIATED_PRICING", "PUBLIC_PRICE_LIST"),
    *("REGION", "RESOURCE_TYPE_ASSIGNMENT", "SUB_ACCOUNT", "TAGGING", "UNIT_PRICING", "USAGE_MEASUREMENT"),
)
"""What applies to a GPU cluster: it has no zones, reservations of capacity, commitments or virtual currency."""
COSMETIC = {"InvoiceId-C-005-C"}
"""An empty InvoiceId fails here, a filled one InvoiceId-C-004: an error of the model (FOCUS_Spec#2394)."""


def runs(python: str | Path) -> bool:
    """Whether it is more than pyenv's placeholder."""
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def validator() -> Path:
    """The validator's program, in an environment that is kept in the user's cache."""
    found = (shutil.which(PYTHON), *sorted(Path.home().glob(f".pyenv/versions/3.12.*/bin/{PYTHON}")))
    python = next((each for each in found if each and runs(each)), None)
    if python is None:
        pytest.skip(f"no {PYTHON}, which the validator needs")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gputally" / VALIDATOR
    program = cache / "bin" / "focus-validator"
    if not program.exists():
        subprocess.run([python, "-m", "venv", "--clear", cache], check=True)
        subprocess.run([cache / "bin" / "pip", "install", "--quiet", VALIDATOR, BESIDE], check=True)
    return program


def test_the_validator_of_focus_finds_nothing(run: Runner, validator: Path, tmp_path: Path) -> None:
    path, rows, verdict = tmp_path / "l.db", tmp_path / "rows.csv", tmp_path / "verdict.xml"
    with SqliteLedger(path) as ledger:
        ledger.bind("14956201-40c4-4d49-ac8c-5e3a7236a434")
        ledger.write(step(*PODS, at=ACCOUNTED))
    rows.write_text(run("report", "--ledger", path, "--window", "all", "--output", "focus").out)
    [packages] = validator.parents[1].glob("lib/python3*/site-packages")

    subprocess.run(
        [
            *(validator, "--data-file", rows, "--block-download", "--validate-version", "1.2"),
            *("--applicability-criteria", ",".join(f"{each}_SUPPORTED" for each in CRITERIA)),
            *("--output-type", "unittest", "--output-destination", verdict),
        ],
        cwd=packages,  # it reads its list of currencies from there
        capture_output=True,
        check=True,
        timeout=120,
    )

    cases = ET.parse(verdict).getroot().findall(".//testcase")
    failed = {each.get("name") for each in ET.parse(verdict).getroot().findall(".//failure")}
    skipped = sum(each.find("skipped") is not None for each in cases)
    assert failed == COSMETIC
    assert (len(cases), skipped) == (578, 288)
