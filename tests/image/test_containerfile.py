"""Both ways to build the image use the same settings, which come from the Containerfile."""

import re
from datetime import UTC, datetime

import pytest

from gputally import __version__
from hack.image.__main__ import version
from hack.image.application import LAUNCHER, STATE
from hack.image.containerfile import CONTAINERFILE, settings
from hack.image.debian import USER
from hack.image.layers import LAYERS
from hack.lock import of_today

TEXT = CONTAINERFILE.read_text()


def test_the_image_runs_as_an_unprivileged_user() -> None:
    found = settings(TEXT)

    assert found["User"] == f"{USER}:{USER}"
    assert found["Entrypoint"] == ["gputally"]
    assert found["WorkingDir"] == f"/{STATE}"
    variables = found["Env"]
    assert isinstance(variables, list)
    assert "PYTHONDONTWRITEBYTECODE=1" in variables
    assert f"/{LAUNCHER.rpartition('/')[0]}" in variables[0].removeprefix("PATH=").split(":")


def test_the_image_has_the_version_of_the_product() -> None:
    assert version() == __version__


def test_a_renewal_uses_the_debian_packages_of_its_day() -> None:
    renewed = of_today(TEXT, datetime(2027, 2, 3, 4, 5, tzinfo=UTC))

    assert "\nARG SNAPSHOT=20270203T000000Z\n" in renewed
    assert len(renewed.splitlines()) == len(TEXT.splitlines())


def test_every_layer_is_copied_in_order() -> None:
    assert re.findall("COPY --from=build /layers/(.*)/ /\n", TEXT) == list(LAYERS)


def test_an_unsupported_instruction_is_rejected() -> None:
    with pytest.raises(ValueError, match="VOLUME"):
        settings("\nFROM scratch\nUSER 1\nVOLUME /data\n")
