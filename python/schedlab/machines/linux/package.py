# SPDX-License-Identifier: MIT
"""Packs `schedlab-linux` as a Debian package and a tarball.

They contain the loader, the policies' BPF objects, a systemd unit, a configuration and a manual
page. The same sources and time give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from schedlab import __version__
from schedlab.base.files.atomic import written
from schedlab.base.toolchain.versions import commit, commit_seconds
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines.linux.apt import need_programs
from schedlab.machines.linux.parts import LINUX, build_linux
from schedlab.paths import ROOT

NAME = "schedlab-linux"
_DATA = ROOT / "linux" / "package"
_HOME = f"usr/lib/{NAME}"
_DOCUMENTS = f"usr/share/doc/{NAME}"
_OVERRIDES = f"usr/share/lintian/overrides/{NAME}"
_CONFIGURATION = f"{NAME}.conf"
_PLACES = {
    NAME: f"{_HOME}/{NAME}",
    _CONFIGURATION: f"etc/{_CONFIGURATION}",
    f"{NAME}.service": f"lib/systemd/system/{NAME}.service",
    f"{NAME}.8": f"usr/share/man/man8/{NAME}.8",
    "copyright": f"{_DOCUMENTS}/copyright",
}
"""Installation paths of the tarball's files; all others go below the program's folder."""
_SCRIPTS = ("postinst", "prerm")
_LEVEL = 6
"""gzip's level: level 9 takes six times as long and saves 1 %."""
_FIRST_MOMENT = 1_767_225_600
"""2026-01-01, the default without SOURCE_DATE_EPOCH and git."""


@dataclass(frozen=True)
class Made:
    """The paths of the two packages."""

    debian: Path
    tarball: Path


def make_package(folder: Path) -> Made:
    """Builds both packages and writes them to the folder, replacing files of the same names."""
    need_programs()
    moment = moment_of_sources(os.environ)
    build_linux("linux-stripped")
    contents = tarball_contents(moment)
    folder.mkdir(parents=True, exist_ok=True)
    made = Made(
        folder / f"{NAME}_{__version__}_amd64.deb", folder / f"{NAME}-{__version__}-x86_64.tar.gz"
    )
    with written(made.tarball) as new:
        new.write_bytes(gzip.compress(tarball(contents, moment), _LEVEL, mtime=moment))
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        tree = Path(place) / "tree"
        write_tree(tree, contents, moment, maintainer_of(os.environ))
        with written(made.debian) as new:
            build_debian(tree, new, moment)
    return made


def moment_of_sources(environment: Mapping[str, str]) -> int:
    """Returns the time of all packaged files (seconds since 1970): SOURCE_DATE_EPOCH or the commit's time."""
    given = environment.get("SOURCE_DATE_EPOCH")
    if given is None:
        return commit_seconds() or _FIRST_MOMENT
    if not given.isascii() or not given.isdecimal() or int(given) >= 2**32:
        raise WrongUsage(
            f"SOURCE_DATE_EPOCH={given}: not a number of seconds since 1970; use one "
            "such as 1767225600"
        )
    return int(given)


def maintainer_of(environment: Mapping[str, str]) -> str:
    """Returns the package's maintainer, from the variables of Debian's tools."""
    name = environment.get("DEBFULLNAME", "The schedlab authors")
    return f"{name} <{environment.get('DEBEMAIL', 'schedlab@localhost')}>"


# --- contents


def tarball_contents(moment: int) -> dict[str, tuple[bytes, int]]:
    """Returns contents and modes by names in the tarball."""
    place = LINUX / "stripped"
    program = place / NAME
    contents = {NAME: (program.read_bytes(), 0o755)}
    for path in sorted((place / "bpf").glob("*.bpf.o")):
        if (LINUX / "bpf" / path.name).exists():
            contents[f"bpf/{path.name}"] = (path.read_bytes(), 0o644)
    for name in (_CONFIGURATION, f"{NAME}.service"):
        contents[name] = ((_DATA / name).read_bytes(), 0o644)
    for name, text in (
        (f"{NAME}.8", manual(help_of(program), moment)),
        ("copyright", copyright_text()),
    ):
        contents[name] = (text.encode(), 0o644)
    return contents


def help_of(program: Path) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def manual(help_text: str, moment: int) -> str:
    """Returns the manual page, whose synopsis is the output of --help."""
    shown = help_text.strip().replace("\\", "\\e").replace("-", "\\-")
    lines = (rf"\&{line}" if line.startswith((".", "'")) else line for line in shown.splitlines())
    return filled(
        f"{NAME}.8",
        HELP="\n".join(lines),
        DATE=time.strftime("%Y-%m-%d", time.gmtime(moment)),
        VERSION=__version__,
    )


def copyright_text() -> str:
    """Returns the licence in Debian's format: lines are indented, and a dot marks an empty line."""
    _title, _, text = (ROOT / "LICENSE").read_text().partition("\n\n")
    _who, _, terms = text.partition("\n\n")
    lines = (f" {line}".rstrip() or " ." for line in terms.strip().splitlines())
    return filled("copyright", LICENSE="\n".join(lines))


def filled(name: str, **values: object) -> str:
    """Returns a file of linux/package with its @SLOTS@ replaced and its licence line removed."""
    _licence, _, text = (_DATA / name).read_text().partition("\n")
    for slot, value in values.items():
        text = text.replace(f"@{slot}@", str(value))
    return text


# --- the tarball


def tarball(contents: Mapping[str, tuple[bytes, int]], moment: int) -> bytes:
    """Returns a tar archive of one folder, with the given time and without owners."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{NAME}-{__version__}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, moment
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


# --- the Debian package


def write_tree(
    tree: Path, contents: Mapping[str, tuple[bytes, int]], moment: int, maintainer: str
) -> None:
    """Writes the tree that dpkg-deb packs."""
    for name, (content, mode) in contents.items():
        place = _PLACES.get(name, f"{_HOME}/{name}")
        if place.endswith(".8"):
            put(tree / f"{place}.gz", gzip.compress(content, mtime=0), mode)
        else:
            put(tree / place, content, mode)
    news = changelog(moment, maintainer).encode()
    put(tree / _DOCUMENTS / "changelog.gz", gzip.compress(news, mtime=0), 0o644)
    put(tree / _OVERRIDES, (_DATA / "lintian-overrides").read_bytes(), 0o644)
    (tree / "usr" / "sbin").mkdir()
    (tree / "usr" / "sbin" / NAME).symlink_to(f"../lib/{NAME}/{NAME}")
    files = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    control = filled("control", VERSION=__version__, MAINTAINER=maintainer, SIZE=size)
    notes = {
        "control": control,
        "conffiles": f"/{_PLACES[_CONFIGURATION]}\n",
        "md5sums": "".join(sums(tree, files)),
        **{name: (_DATA / name).read_text() for name in _SCRIPTS},
    }
    for name, text in notes.items():
        put(tree / "DEBIAN" / name, text.encode(), 0o755 if name in _SCRIPTS else 0o644)
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def put(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def changelog(moment: int, maintainer: str) -> str:
    made_of = commit()["commit"]
    source = f", commit {made_of[:12]}" if made_of else ""
    date = formatdate(moment)
    return (
        f"{NAME} ({__version__}) unstable; urgency=medium\n\n"
        f"  * Version {__version__} of schedlab{source}.\n\n -- {maintainer}  {date}\n"
    )


def sums(tree: Path, files: list[Path]) -> Iterator[str]:
    """Yields lines of md5sums, which dpkg checks.

    Users may change files in /etc, so these are omitted.
    """
    for path in files:
        name = path.relative_to(tree)
        if name.parts[0] != "etc":
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            yield f"{digest}  {name}\n"


def build_debian(tree: Path, target: Path, moment: int) -> None:
    """Builds the package; no file gets a later time than `moment`."""
    command = [shutil.which("dpkg-deb") or "dpkg-deb", "--root-owner-group", "--build"]
    done = subprocess.run(
        [*command, str(tree), str(target)],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(moment)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SchedlabError(f"dpkg-deb cannot build the package: {done.stderr.strip()}")
