"""Requests that no honest client makes, each with the status of its answer, after which the connection ends."""

GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n"
END = b"Connection: close\r\n\r\n"
SMUGGLED = b"GET /v1/usage HTTP/1.1\r\nHost: a\r\n\r\n"


def target(path: bytes, method: bytes = b"GET") -> bytes:
    return method + b" " + path + b" HTTP/1.1\r\nHost: a\r\n" + END


REQUESTS: dict[str, tuple[bytes, int]] = {
    "a request line of 9 kB": (target(b"/" + b"a" * 9000), 400),
    "a header of 9 kB": (GET + b"A: " + b"a" * 9000 + b"\r\n\r\n", 400),
    "a header without end": (GET + b"A: " + b"a" * 1_000_000, 400),
    "200 headers": (GET + b"A: b\r\n" * 200 + b"\r\n", 400),
    "a body": (GET + b"Content-Length: 5\r\n\r\nhello", 413),
    "a body of 1 GB": (GET + b"Content-Length: 1000000000\r\n\r\n" + b"a" * 100_000, 413),
    "a body in chunks": (GET + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 413),
    "a body that never comes": (GET + b"Content-Length: 5\r\n\r\n", 413),
    "POST": (target(b"/metrics", b"POST"), 405),
    "DELETE": (target(b"/metrics", b"DELETE"), 405),
    "OPTIONS": (target(b"/metrics", b"OPTIONS"), 405),
    "TRACE": (target(b"/metrics", b"TRACE"), 405),
    "CONNECT": (target(b"evil.example:443", b"CONNECT"), 413),
    "a method that does not exist": (target(b"/metrics", b"EAT"), 400),
    "path traversal": (target(b"/../../etc/passwd"), 404),
    "path traversal, encoded": (target(b"/metrics/..%2f..%2fetc%2fpasswd"), 404),
    "a path with an encoded slash": (target(b"/v1%2fusage"), 404),
    "a path with two slashes": (target(b"//metrics"), 404),
    "a URI of another host": (target(b"http://evil.example/nowhere"), 404),
    "a URI with a broken host": (target(b"http://[::1/metrics"), 400),
    "a URI with a broken port": (target(b"http://a:99999999/metrics"), 400),
    "line breaks in the path": (target(b"/%0d%0aSet-Cookie:%20a=b"), 404),
    "a carriage return in a header": (GET + b"A: b\rSet-Cookie: a=b\r\n\r\n", 400),
    "a header on two lines": (GET + b"A: b\r\n Set-Cookie: a=b\r\n\r\n", 400),
    "a blank before a colon": (GET + b"Content-Length : 5\r\n\r\nhello", 400),
    "no Host": (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
    "lengths that contradict": (GET + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello", 400),
    "a negative length": (GET + b"Content-Length: -5\r\n\r\nhello", 400),
    "smuggling by length and chunks": (
        GET + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        400,
    ),
    "smuggling by two encodings": (
        GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
        400,
    ),
    "smuggling behind a body": (GET + b"Content-Length: 5\r\n\r\nhello" + SMUGGLED, 413),
    "NUL in the path": (target(b"/met\0rics"), 400),
    "NUL in the path, encoded": (target(b"/metrics%00"), 404),
    "NUL in a header": (GET + b"A: b\0c\r\n\r\n", 400),
    "nothing but NUL": (b"\0" * 1000, 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/9.9": (b"GET /metrics HTTP/9.9\r\nHost: a\r\n\r\n", 400),
    "TLS where there is none": (bytes.fromhex("16030100c8010000c40303") + b"\x55" * 200, 400),
}
