import pytest

from gputally import __version__
from hack.chart import FILES, Undescribed, copies, described_values, readme, with_version

VALUES = """
# -- Names | of Secrets.
secrets: []
web:
  # -- A port.
  port: 80 # of TCP
  # -- Labels of all.
  labels:
    app: "1"
"""


def test_a_value_has_the_comment_right_above_it() -> None:
    assert [tuple(value) for value in described_values(VALUES)] == [
        ("secrets", [], "Names | of Secrets."),
        ("web.port", 80, "A port."),
        ("web.labels", {"app": "1"}, "Labels of all."),
    ]


def test_each_section_is_a_table() -> None:
    assert readme(VALUES).endswith(
        "## All objects\n\n| Value | Default | Meaning |\n| --- | --- | --- |\n"
        "| `secrets` | `[]` | Names \\| of Secrets. |\n"
        "\n## `web`\n\n| Value | Default | Meaning |\n| --- | --- | --- |\n"
        "| `web.port` | `80` | A port. |\n"
        '| `web.labels` | `{"app": "1"}` | Labels of all. |\n'
    )


@pytest.mark.parametrize("values", ["port: 80\n", "web:\n  # -- A port.\n  port: 80\n  path: /\n"])
def test_a_value_without_a_comment_is_refused(values: str) -> None:
    with pytest.raises(Undescribed, match="write what it is for"):
        list(described_values(values))


def test_the_chart_has_the_version_of_the_product() -> None:
    page = with_version("apiVersion: v2\nversion: 0.0.1\nappVersion: 0.0.2\n")

    assert page == f"apiVersion: v2\nversion: {__version__}\nappVersion: {__version__}\n"


def test_only_what_the_chart_needs_is_copied() -> None:
    generated = {"dashboards/generated/a.json": "{}", "alerts/generated/prometheusrules/a.yaml": "a: 1"}

    assert copies(generated, "port: 80") == {f"{FILES}/dashboards/a.json": "{}", f"{FILES}/values.yaml": "port: 80"}
