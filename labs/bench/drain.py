"""Reads one list from the API server and discards it: `drain.py URL CA_FILE PATH` (token on stdin).

This is the lower bound of any start, because a client that also decodes the list cannot be faster. It runs as a
separate process with minimal imports. It prints the bytes, and the seconds since its first request.
"""

import asyncio
import ssl
import sys
import time

from aiohttp import ClientSession, ClientTimeout

END_OF_STREAMED_LIST = b'"k8s.io/initial-events-end":"true"'


async def drain(url: str, ca_file: str, token: str) -> tuple[int, float]:
    """Bytes and seconds until the end of the response or of the streaming list."""
    tls = ssl.create_default_context(cafile=ca_file)
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Accept-Encoding": "identity"}
    async with ClientSession(headers=headers, timeout=ClientTimeout(), read_bufsize=1 << 20) as session:
        started = time.perf_counter()
        total, tail = 0, b""
        async with session.get(url, ssl=tls) as response:
            response.raise_for_status()
            async for chunk in response.content.iter_any():
                total += len(chunk)
                tail = (tail + chunk)[-4096:] if len(chunk) < 4096 else chunk[-4096:]
                if END_OF_STREAMED_LIST in tail:
                    break
        return total, time.perf_counter() - started


if __name__ == "__main__":
    read, seconds = asyncio.run(drain(sys.argv[1], sys.argv[2], sys.stdin.readline().strip()))
    sys.stdout.write(f"{read} {seconds}\n")
