# SPDX-License-Identifier: MIT
"""Packs `schedlab-linux` as a Debian package, an RPM and a tarball, with a PKGBUILD for Arch.

They contain the loader, the policies' BPF objects, a systemd unit, a configuration and a manual
page. The same sources and time give the same bytes. The RPM and Arch's package are made from the tarball.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from schedlab import __version__
from schedlab.base.files.archive import make_tar
from schedlab.base.files.atomic import atomic_write, file_hash
from schedlab.base.toolchain.tools import run_captured
from schedlab.base.toolchain.versions import commit_facts, commit_seconds
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines.linux.apt import require_apt_programs
from schedlab.machines.linux.parts import LINUX_BUILD, build_linux
from schedlab.paths import ROOT

PACKAGE_NAME = "schedlab-linux"
_TEMPLATES = ROOT / "linux" / "package"
_HOME = f"usr/lib/{PACKAGE_NAME}"
_DOCUMENTS = f"usr/share/doc/{PACKAGE_NAME}"
_OVERRIDES = f"usr/share/lintian/overrides/{PACKAGE_NAME}"
_CONFIGURATION = f"{PACKAGE_NAME}.conf"
_INSTALL_PATHS = {
    PACKAGE_NAME: f"{_HOME}/{PACKAGE_NAME}",
    _CONFIGURATION: f"etc/{_CONFIGURATION}",
    f"{PACKAGE_NAME}.service": f"lib/systemd/system/{PACKAGE_NAME}.service",
    f"{PACKAGE_NAME}.8": f"usr/share/man/man8/{PACKAGE_NAME}.8",
    "copyright": f"{_DOCUMENTS}/copyright",
}
"""Where the tarball's files are installed; all other files go below the program's folder."""
_UNITS_OUTSIDE_DEBIAN = "usr/lib/systemd/system"
_RECIPES = (f"{PACKAGE_NAME}.spec", "PKGBUILD", f"{PACKAGE_NAME}.install")
"""What rpmbuild and makepkg need next to the tarball."""
_SCRIPTS = ("postinst", "prerm")
_LEVEL = 6
"""Compression level of gzip: level 9 would take six times as long and save 1 %."""
_DEFAULT_TIME = 1_767_225_600
"""Time of all files without SOURCE_DATE_EPOCH and without git: 2026-01-01."""


@dataclass(frozen=True)
class BuiltPackages:
    """The paths of the packages."""

    debian: Path
    tarball: Path
    recipes: tuple[Path, ...]
    """What rpmbuild and makepkg need next to the tarball."""
    rpm: Path | None
    """None: this host has no rpmbuild."""


def make_package(folder: Path) -> BuiltPackages:
    """Builds the packages and writes them to the folder, replacing files of the same names."""
    require_apt_programs()
    timestamp = source_timestamp(os.environ)
    build_linux("linux-stripped")
    contents = tarball_contents(timestamp)
    folder.mkdir(parents=True, exist_ok=True)
    tarball = folder / f"{PACKAGE_NAME}-{__version__}-x86_64.tar.gz"
    with atomic_write(tarball) as new:
        files = {f"{PACKAGE_NAME}-{__version__}/{name}": file for name, file in contents.items()}
        new.write_bytes(gzip.compress(make_tar(files, timestamp), _LEVEL, mtime=timestamp))
    debian = folder / f"{PACKAGE_NAME}_{__version__}_amd64.deb"
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        tree = Path(place) / "tree"
        write_tree(tree, contents, timestamp, package_maintainer(os.environ))
        with atomic_write(debian) as new:
            build_debian(tree, new, timestamp)
    recipes = tuple(write_recipes(folder, tarball))
    return BuiltPackages(debian, tarball, recipes, build_rpm(folder, timestamp))


def source_timestamp(environment: Mapping[str, str]) -> int:
    """Returns the time for all packaged files (s since 1970): SOURCE_DATE_EPOCH, or that of the commit."""
    epoch = environment.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return commit_seconds() or _DEFAULT_TIME
    if not epoch.isascii() or not epoch.isdecimal() or int(epoch) >= 2**32:
        raise WrongUsage(
            f"SOURCE_DATE_EPOCH={epoch}: not a number of seconds since 1970; use one "
            "such as 1767225600"
        )
    return int(epoch)


def package_maintainer(environment: Mapping[str, str]) -> str:
    """Returns the package's maintainer, from the variables of Debian's tools."""
    name = environment.get("DEBFULLNAME", "The schedlab authors")
    return f"{name} <{environment.get('DEBEMAIL', 'schedlab@localhost')}>"


# --- contents


def tarball_contents(timestamp: int) -> dict[str, tuple[bytes, int]]:
    """Returns contents and modes by names in the tarball."""
    place = LINUX_BUILD / "stripped"
    program = place / PACKAGE_NAME
    contents = {PACKAGE_NAME: (program.read_bytes(), 0o755)}
    for path in sorted((place / "bpf").glob("*.bpf.o")):
        if (LINUX_BUILD / "bpf" / path.name).exists():
            contents[f"bpf/{path.name}"] = (path.read_bytes(), 0o644)
    for name in (_CONFIGURATION, f"{PACKAGE_NAME}.service"):
        contents[name] = ((_TEMPLATES / name).read_bytes(), 0o644)
    for name, text in (
        (f"{PACKAGE_NAME}.8", manual_page(read_help(program), timestamp)),
        ("copyright", copyright_text()),
    ):
        contents[name] = (text.encode(), 0o644)
    return contents


def read_help(program: Path) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def manual_page(help_text: str, timestamp: int) -> str:
    """Returns the manual page, whose synopsis is the output of --help."""
    shown = help_text.strip().replace("\\", "\\e").replace("-", "\\-")
    lines = (rf"\&{line}" if line.startswith((".", "'")) else line for line in shown.splitlines())
    return fill_template(
        f"{PACKAGE_NAME}.8",
        HELP="\n".join(lines),
        DATE=time.strftime("%Y-%m-%d", time.gmtime(timestamp)),
        VERSION=__version__,
    )


def copyright_text() -> str:
    """Returns the licence in Debian's format: lines are indented, and a dot marks an empty line."""
    _title, _, text = (ROOT / "LICENSE").read_text().partition("\n\n")
    _who, _, terms = text.partition("\n\n")
    lines = (f" {line}".rstrip() or " ." for line in terms.strip().splitlines())
    return fill_template("copyright", LICENSE="\n".join(lines))


def fill_template(name: str, **values: object) -> str:
    """Returns a file of linux/package without its licence line, and with values for its @NAMES@."""
    _licence, _, text = (_TEMPLATES / name).read_text().partition("\n")
    for placeholder, value in values.items():
        text = text.replace(f"@{placeholder}@", str(value))
    return text


# --- the Debian package


def write_tree(
    tree: Path, contents: Mapping[str, tuple[bytes, int]], timestamp: int, maintainer: str
) -> None:
    """Writes the tree that dpkg-deb packs."""
    for name, (content, mode) in contents.items():
        place = _INSTALL_PATHS.get(name, f"{_HOME}/{name}")
        if place.endswith(".8"):
            write_file(tree / f"{place}.gz", gzip.compress(content, mtime=0), mode)
        else:
            write_file(tree / place, content, mode)
    changelog_text = changelog(timestamp, maintainer).encode()
    write_file(tree / _DOCUMENTS / "changelog.gz", gzip.compress(changelog_text, mtime=0), 0o644)
    write_file(tree / _OVERRIDES, (_TEMPLATES / "lintian-overrides").read_bytes(), 0o644)
    (tree / "usr" / "sbin").mkdir()
    (tree / "usr" / "sbin" / PACKAGE_NAME).symlink_to(f"../lib/{PACKAGE_NAME}/{PACKAGE_NAME}")
    files = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    control = fill_template("control", VERSION=__version__, MAINTAINER=maintainer, SIZE=size)
    control_files = {
        "control": control,
        "conffiles": f"/{_INSTALL_PATHS[_CONFIGURATION]}\n",
        "md5sums": "".join(md5_lines(tree, files)),
        **{name: (_TEMPLATES / name).read_text() for name in _SCRIPTS},
    }
    for name, text in control_files.items():
        write_file(tree / "DEBIAN" / name, text.encode(), 0o755 if name in _SCRIPTS else 0o644)
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def write_file(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def changelog(timestamp: int, maintainer: str) -> str:
    commit_hash = commit_facts()["commit"]
    source = f", commit {commit_hash[:12]}" if commit_hash else ""
    date = formatdate(timestamp)
    return (
        f"{PACKAGE_NAME} ({__version__}) unstable; urgency=medium\n\n"
        f"  * Version {__version__} of schedlab{source}.\n\n -- {maintainer}  {date}\n"
    )


def md5_lines(tree: Path, files: list[Path]) -> Iterator[str]:
    """Yields the lines of md5sums, which dpkg uses to find damaged files.

    Omits files in /etc, because users may change them.
    """
    for path in files:
        name = path.relative_to(tree)
        if name.parts[0] != "etc":
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            yield f"{digest}  {name}\n"


def build_debian(tree: Path, target: Path, timestamp: int) -> None:
    """Builds the package; no file gets a later time than `timestamp`."""
    command = [shutil.which("dpkg-deb") or "dpkg-deb", "--root-owner-group", "--build"]
    result = run_captured(
        [*command, str(tree), str(target)], env={**os.environ, "SOURCE_DATE_EPOCH": str(timestamp)}
    )
    if result.returncode:
        raise SchedlabError(
            f"dpkg-deb cannot build the package: {result.stderr.strip()}",
            fix="check the permissions and the free space of its folder",
        )


# --- packages of other distributions


def write_recipes(folder: Path, tarball: Path) -> Iterator[Path]:
    """Writes what rpmbuild and makepkg need next to the tarball, and yields the files."""
    scripts = {
        name.upper(): (_TEMPLATES / name).read_text().partition("\nset -e\n")[2].strip()
        for name in _SCRIPTS
    }
    for name in _RECIPES:
        # Arch has all programs in /usr/bin.
        programs = "usr/bin" if name == "PKGBUILD" else "usr/sbin"
        text = fill_template(
            name,
            VERSION=__version__,
            SHA256=file_hash(tarball),
            INSTALL="\n".join(install_commands(programs)),
            **scripts,
        )
        place = folder / name
        with atomic_write(place) as new:
            new.write_text(text)
        yield place


def install_commands(programs: str) -> Iterator[str]:
    """Yields shell commands that install the unpacked tarball below $place. `programs`: where the
    program's link goes.
    """
    service = f"{PACKAGE_NAME}.service"
    for name, target in {**_INSTALL_PATHS, service: f"{_UNITS_OUTSIDE_DEBIAN}/{service}"}.items():
        mode = "755" if name == PACKAGE_NAME else "644"
        yield f'install -D -m {mode} {name} "$place/{target}"'
    yield f'install -D -m 644 -t "$place/{_HOME}/bpf" bpf/*.bpf.o'
    yield f'install -d "$place/{programs}"'
    yield f'ln -s ../lib/{PACKAGE_NAME}/{PACKAGE_NAME} "$place/{programs}/{PACKAGE_NAME}"'


def build_rpm(folder: Path, timestamp: int) -> Path | None:
    """Builds the RPM from the tarball and the spec file in the folder, if this host has rpmbuild."""
    program = shutil.which("rpmbuild")
    if not program:
        return None
    # rpmbuild fails if a path contains a space.
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        for name in (f"{PACKAGE_NAME}.spec", f"{PACKAGE_NAME}-{__version__}-x86_64.tar.gz"):
            shutil.copyfile(folder / name, Path(place) / name)
        defines = {"_topdir": place, "_sourcedir": place, "_rpmdir": place}
        options = [part for name, value in defines.items() for part in ("-D", f"{name} {value}")]
        result = run_captured(
            [program, "-bb", *options, f"{place}/{PACKAGE_NAME}.spec"],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(timestamp)},
        )
        packages = list(Path(place).glob("x86_64/*.rpm"))
        if result.returncode or not packages:
            reason = result.stderr.strip()[-2000:]
            raise SchedlabError(
                f"rpmbuild cannot build the package: {reason}",
                fix="remove rpmbuild from the PATH to make the other packages only",
            )
        with atomic_write(folder / packages[0].name) as new:
            shutil.copyfile(packages[0], new)
    return folder / packages[0].name
