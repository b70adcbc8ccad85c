"""Who is let in, with passwords, tokens and certificates, over real sockets."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.certificates import Certificates
from tests.fakes.policies import MUTUAL, PAGE, TLS, basic, config, hashed, policies

TOKEN = "0123456789abcdef"
HASH = "$2y$04$qPETmGEhy4pSqNi1XXdqcOGxAD.VLDORj7CTONolUMwpJLw.FJ.Aa"
"""Of `pass-phrase`."""
OPEN = ("/healthz", "/readyz")
CLOSED = ("/", "/metrics", "/v1/usage", "/nowhere")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("tls"))
    made.self_signed("stranger")
    made.expired("expired")
    return made


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """anna has a password, prometheus a token."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return config(
        tmp_path,
        f"""
basic_auth_users:
  anna: {HASH}
bearer_token_files:
  prometheus: token
""",
    )


@pytest.mark.parametrize("path", ["/", "/metrics", "/v1/usage"])
@pytest.mark.parametrize("shown", [basic("anna", "pass-phrase"), f"Bearer {TOKEN}", f"bearer {TOKEN}"])
async def test_users_are_let_in(users: Path, path: str, shown: str) -> None:
    async with policies(users) as door:
        for _ in range(2):
            assert (await door.get(path, shown=shown)).status == 200


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic AAAA\xe9",
        basic("anna", ""),
        basic("anna", "Pass-phrase"),
        basic("anna", "pass-phrase" * 100),
        basic("anna", "pass-phrase\0"),
        basic("nobody", "pass-phrase"),
        basic("prometheus", TOKEN),
        "Bearer",
        f"Bearer {TOKEN}0",
        f"Basic {TOKEN}",
        f"Bearer {HASH}",
    ],
)
async def test_nobody_else_is(users: Path, path: str, shown: str) -> None:
    async with policies(users) as door:
        answer = await door.get(path, shown=shown)

    assert (answer.status, answer.text) == (401, "credentials are required\n")
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="gputally", Bearer realm="gputally"'


@pytest.mark.parametrize("path", OPEN)
async def test_kubelets_need_no_credentials(users: Path, path: str) -> None:
    async with policies(users) as door:
        assert (await door.get(path)).status == 200


async def test_a_user_who_is_removed_and_a_password_that_is_replaced_count_from_the_next_request(
    users: Path, tmp_path: Path
) -> None:
    async with policies(users) as door:
        assert (await door.get(shown=basic("anna", "pass-phrase"))).status == 200
        config(tmp_path, f"basic_auth_users: {{anna: {hashed('other')}}}\n")

        assert (await door.get(shown=basic("anna", "pass-phrase"))).status == 401
        assert (await door.get(shown=basic("anna", "other"))).status == 200
        assert (await door.get(shown=f"Bearer {TOKEN}")).status == 401


async def test_a_token_that_is_replaced_counts_from_the_next_request(users: Path, tmp_path: Path) -> None:
    async with policies(users) as door:
        (tmp_path / "token").write_text("another-token")

        assert (await door.get(shown=f"Bearer {TOKEN}")).status == 401
        assert (await door.get(shown="Bearer another-token")).status == 200


async def test_a_file_that_becomes_wrong_leaves_the_old_one_in_force_and_is_told_once(
    users: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sound = read(users)
    async with policies(users) as door:
        write(users, "basic_auth_users: {anna: pass-phrase}\n")
        statuses = [(await door.get(shown=basic("anna", "pass-phrase"))).status for _ in range(3)]
        write(users, sound.replace("anna", "bert"))
        mended = (await door.get(shown=basic("bert", "pass-phrase"))).status

    assert (statuses, mended) == ([200] * 3, 200)
    [told] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told.startswith("changed files are not used, the previous contents stay in use: ")
    assert "basic_auth_users.anna: is not a bcrypt hash; use what `htpasswd" in told


async def test_a_page_with_a_token_of_its_own_is_opened_by_that_and_nothing_else(users: Path) -> None:
    async with policies(users, tokens={"/v1/usage": lambda: "own"}) as door:
        assert (await door.get("/v1/usage", shown="Bearer own")).status == 200
        for other in (f"Bearer {TOKEN}", basic("anna", "pass-phrase"), "Bearer ", "Bearer \xe9"):
            assert (await door.get("/v1/usage", shown=other)).status == 401
        assert (await door.get("/metrics", shown="Bearer own")).status == 401


async def test_a_token_of_one_page_closes_no_other() -> None:
    async with policies(tokens={"/v1/usage": lambda: "own"}) as door:
        assert (await door.get("/v1/usage")).status == 401
        assert (await door.get("/metrics")).status == 200


async def test_a_user_of_tenants_sees_their_series_and_nothing_else(tmp_path: Path) -> None:
    text = f"""
basic_auth_users: {{anna: {hashed("pass-phrase")}, all: {hashed("pass-phrase")}}}
tenants: {{anna: [vision]}}
"""
    async with policies(config(tmp_path, text)) as door:
        hers = await door.get(shown=basic("anna", "pass-phrase"))
        usage = await door.get("/v1/usage", shown=basic("anna", "pass-phrase"))
        whole = await door.get(shown=basic("all", "pass-phrase"))

    assert [line for line in hers.text.splitlines() if not line.startswith("#")] == [
        'gputally_gpus{pool="a",tenant="vision"} 8.0'
    ]
    assert (usage.status, whole.text) == (403, PAGE.decode())


async def test_headers_of_the_configuration_replace_ours(tmp_path: Path) -> None:
    text = """
http_server_config:
  headers:
    Strict-Transport-Security: max-age=3600
    X-Frame-Options: sameorigin
"""
    async with policies(config(tmp_path, text)) as door:
        for path in ("/metrics", "/nowhere"):
            headers = (await door.get(path)).headers
            assert headers["Strict-Transport-Security"] == "max-age=3600"
            assert headers["X-Frame-Options"] == "sameorigin"
            assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/metrics", "/nowhere", "/readyz", "/v1/usage"])
async def test_no_answer_may_run_be_framed_or_kept(path: str) -> None:
    async with policies() as door:
        headers = (await door.get(path)).headers

    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["X-Frame-Options"] == "deny"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


async def test_a_client_must_show_a_certificate_of_the_authority(certificates: Certificates) -> None:
    async with policies(config(certificates.folder, MUTUAL)) as door:
        statuses = {
            name: (await door.get(tls=certificates.client_context(name))).status
            for name in ("client", "", "stranger", "expired")
        }

    assert statuses == {"client": 200, "": 0, "stranger": 0, "expired": 0}


async def test_a_certificate_that_is_given_is_checked_where_none_is_needed(certificates: Certificates) -> None:
    text = MUTUAL.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")
    async with policies(config(certificates.folder, text)) as door:
        statuses = [
            (await door.get(tls=certificates.client_context(name))).status for name in ("client", "", "stranger")
        ]

    assert statuses == [200, 200, 0]


@pytest.mark.parametrize(
    ("names", "status"), [("[127.0.0.1, other]", 200), ("[kubernetes.default]", 200), ("[gputally]", 403)]
)
async def test_a_certificate_must_have_one_of_the_names(certificates: Certificates, names: str, status: int) -> None:
    text = f"{MUTUAL}  client_allowed_sans: {names}\n"
    async with policies(config(certificates.folder, text)) as door:
        assert (await door.get("/healthz", tls=certificates.client_context("client"))).status == status


async def test_a_certificate_that_is_replaced_is_shown_to_the_next_who_connects(tmp_path: Path) -> None:
    first = Certificates(tmp_path)
    async with policies(config(tmp_path, TLS)) as door:
        trusting_the_first = first.client_context()
        assert (await door.get(tls=trusting_the_first)).status == 200

        second = Certificates(tmp_path)

        assert (await door.get(tls=trusting_the_first)).status == 0
        assert (await door.get(tls=second.client_context())).status == 200


async def test_a_connection_from_before_certificates_were_asked_for_is_closed(tmp_path: Path) -> None:
    Certificates(tmp_path)
    async with policies(config(tmp_path, "http_server_config: {headers: {X-Frame-Options: deny}}")) as door:
        reader, writer = await asyncio.open_connection(door.host, door.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")

        config(tmp_path, MUTUAL)

        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()


async def test_a_key_that_does_not_fit_leaves_the_old_certificate_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(tmp_path)
    async with policies(config(tmp_path, TLS)) as door:
        certificates.key("server").write_bytes(certificates.key("client").read_bytes())

        assert (await door.get(tls=certificates.client_context())).status == 200
    assert "server.crt: cert_file, key_file: cannot be used: [X509: KEY_VALUES_MISMATCH]" in caplog.text


async def test_a_version_that_is_too_old_is_not_spoken(certificates: Certificates) -> None:
    old = certificates.client_context()
    old.maximum_version = old.minimum_version
    async with policies(config(certificates.folder, f"{TLS}  min_version: TLS13\n")) as door:
        assert (await door.get(tls=old)).status == 0
        assert (await door.get(tls=certificates.client_context())).status == 200


async def test_no_secret_is_in_the_log_nor_in_any_answer(users: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = ["pass-phrase", "wrong-password", TOKEN, "wrong-token", "typed-as-user"]
    shown = [
        basic("anna", "pass-phrase"),
        basic("anna", "wrong-password"),
        basic("typed-as-user", "pass-phrase"),
        f"Bearer {TOKEN}",
        "Bearer wrong-token",
        "Basic wrong-token",
        "wrong-token",
    ]
    async with policies(users) as door:
        answers = [await door.get(path, shown=each) for each in shown for path in ("/metrics", "/nowhere")]
        answers.append(await door.get(f"/metrics?token={TOKEN}"))
        broken = await door.send(f"GET / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\x00\r\n\r\n".encode())
        write(users, read(users).replace(" token", " missing-token").replace("$2y$", "secret$2y$"))
        await door.get()

    said = caplog.text + broken.data.decode() + "".join(f"{each.text}{dict(each.headers)}" for each in answers)
    digests = [line.partition(": ")[2] for line in read(users).splitlines() if "$2" in line]
    assert "rejected requests" in said
    assert [each for each in (*secrets, *digests) if each in said] == []


def read(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.write_text(text)
