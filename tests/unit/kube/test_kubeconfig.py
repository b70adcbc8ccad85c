"""What is wrong with a kubeconfig is said with file, field and remedy."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gputally.errors import ConfigError
from gputally.kube.kubeconfig import choose


def config(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A kubeconfig of one context; `cluster` and `user` replace its parts."""
    return {
        "current-context": changes.get("current", "prod"),
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"} | changes.get("context", {})}],
        "clusters": [{"name": "c", "cluster": {"server": "https://host:6443"} | changes.get("cluster", {})}],
        "users": [{"name": "u", "user": {"token": "t"} | changes.get("user", {})}],
    }


def write(path: Path, content: object) -> Path:
    """The kubeconfig as a file."""
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def complaint(path: Path, context: str = "") -> str:
    """What the user reads, without the folder."""
    with pytest.raises(ConfigError) as caught:
        choose([path], context)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_a_good_kubeconfig_is_chosen_from(tmp_path: Path) -> None:
    chosen = choose([write(tmp_path / "k", config())])

    assert (chosen.context, chosen.cluster.server, chosen.user_name) == ("prod", "https://host:6443", "u")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a: [", "k: line 1: not YAML; compare with `kubectl config view`"),
        ("", "k: not a kubeconfig: Expected `object`, got `null`"),
        ("just text", "k: not a kubeconfig: Expected `object`, got `str`"),
        ("clusters: {}", "k: clusters: not a kubeconfig: Expected `array | null`, got `object`"),
        ("clusters: [{cluster: {}}]", "k: clusters[0]: not a kubeconfig: Object missing required field `name`"),
        (config(current=""), "k: current-context: no context is set; known: prod"),
        (config(current="test"), "k: current-context: unknown context 'test'; known: prod"),
        ({"contexts": None}, "k: current-context: no context is set; known: none is defined"),
        (config(context={"cluster": "x"}), "k: contexts[prod].context.cluster: unknown cluster 'x'; known: c"),
        (config(context={"user": "x"}), "k: contexts[prod].context.user: unknown user 'x'; known: u"),
        (config(cluster={"server": ""}), "k: clusters[c].cluster.server: '' is not a URL; use https://HOST:PORT"),
        (
            config(cluster={"proxy-url": "socks5://p"}),
            "k: clusters[c].cluster.proxy-url: 'socks5://p': use an http or https proxy",
        ),
        (
            config(cluster={"certificate-authority": "ca.crt"}),
            "k: clusters[c].cluster.certificate-authority: no such file: ca.crt",
        ),
        (
            config(cluster={"certificate-authority-data": "abc"}),
            "k: clusters[c].cluster.certificate-authority-data: not base64; it may have been cut when it was copied",
        ),
        (config(user={"tokenFile": "tok"}), "k: users[u].user.tokenFile: no such file: tok"),
        (
            config(user={"client-certificate": "a.crt", "client-key": "a.key"}),
            """\
k: users[u].user.client-certificate: no such file: a.crt
k: users[u].user.client-key: no such file: a.key""",
        ),
        (
            config(user={"exec": {"apiVersion": "v1"}}),
            "k: users[u].user.exec.command: missing; add the program that prints the credentials",
        ),
    ],
)  # fmt: skip
def test_a_broken_kubeconfig_is_told_by_file_field_and_remedy(tmp_path: Path, content: object, text: str) -> None:
    assert complaint(write(tmp_path / "k", content)) == text


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path / "gone") == "gone: no such file; specify an existing kubeconfig"


def test_a_kubeconfig_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert complaint(tmp_path).endswith(": cannot be read: Is a directory")


def test_a_context_may_be_named(tmp_path: Path) -> None:
    assert complaint(write(tmp_path / "k", config()), "stage") == (
        "k: current-context: unknown context 'stage'; known: prod"
    )


def test_of_several_files_the_first_to_define_a_name_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}]})
    second = write(tmp_path / "2", config())

    chosen = choose([tmp_path / "gone", first, second])

    assert chosen.cluster.server == "https://first"
    assert (chosen.cluster_file, chosen.user_file) == (first, second)


def test_a_context_without_a_user_logs_in_as_nobody(tmp_path: Path) -> None:
    assert choose([write(tmp_path / "k", config(context={"user": ""}))]).user_name == ""
