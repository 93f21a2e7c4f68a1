# SPDX-License-Identifier: MIT
"""Tests the RPM and Arch's package: both install the same files as the Debian package."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from schedlab import __version__
from schedlab.base.files.archive import make_tar
from schedlab.machines.linux.package import (
    PACKAGE_NAME,
    build_rpm,
    install_commands,
    write_recipes,
    write_tree,
)

MOMENT = 1_767_225_600
PROGRAM = b"#!/bin/sh\necho Policy: rr\n"
CONTENTS = {
    PACKAGE_NAME: (PROGRAM, 0o755),
    "bpf/rr.bpf.o": (b"object", 0o644),
    "bpf/mlfq.bpf.o": (b"object", 0o644),
    f"{PACKAGE_NAME}.conf": (b"policy = fair\n", 0o644),
    f"{PACKAGE_NAME}.service": (b"[Unit]\n", 0o644),
    f"{PACKAGE_NAME}.8": (b".TH schedlab-linux 8\n", 0o644),
    "copyright": (b"MIT\n", 0o644),
}
DEBIAN_ONLY = {"changelog.gz", "lintian-overrides"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tarball and the recipes; its name has a space, as users' folders may."""
    tmp_path = tmp_path / "of somebody"
    tmp_path.mkdir()
    tarball = tmp_path / f"{PACKAGE_NAME}-{__version__}-x86_64.tar.gz"
    files = {f"{PACKAGE_NAME}-{__version__}/{name}": file for name, file in CONTENTS.items()}
    tarball.write_bytes(gzip.compress(make_tar(files, MOMENT), mtime=MOMENT))
    assert len(list(write_recipes(tmp_path, tarball))) == 3
    return tmp_path


def debian_places(folder: Path) -> set[str]:
    """Returns the paths of the Debian package, without its own documents."""
    tree = folder / "tree"
    write_tree(tree, CONTENTS, MOMENT, "somebody <a@b>")
    shutil.rmtree(tree / "DEBIAN")
    return places(tree)


def places(tree: Path) -> set[str]:
    paths = {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}
    return {
        path.replace("usr/lib/systemd", "lib/systemd").replace(".8.gz", ".8")
        for path in paths
        if Path(path).name not in DEBIAN_ONLY and "lintian" not in path
    }


def test_commands_install_the_files_of_the_debian_package(folder: Path) -> None:
    subprocess.run(["tar", "-xf", next(folder.glob("*.tar.gz")), "-C", folder], check=True)
    script = "\n".join(["set -e", *install_commands("usr/sbin")])
    subprocess.run(
        ["sh", "-c", script],
        check=True,
        cwd=folder / f"{PACKAGE_NAME}-{__version__}",
        env={**os.environ, "place": str(folder / "other")},
    )
    assert places(folder / "other") == debian_places(folder)
    link = folder / "other" / "usr" / "sbin" / PACKAGE_NAME
    assert link.read_bytes() == PROGRAM
    assert os.access(link, os.X_OK)


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not here: install rpm")
def test_the_rpm_has_the_files_and_scripts(folder: Path) -> None:
    rpm = build_rpm(folder, MOMENT)
    assert rpm
    assert rpm.name == f"{PACKAGE_NAME}-{__version__}-1.x86_64.rpm"
    first = rpm.read_bytes()
    build_rpm(folder, MOMENT)
    assert rpm.read_bytes() == first
    listed = {Path(path) for path in query(rpm, "-l").split()}
    folders = {folder for path in listed for folder in path.parents}
    installed = {
        str(path.relative_to("/")).replace("usr/lib/systemd", "lib/systemd").replace(".8.gz", ".8")
        for path in listed - folders
    }
    assert installed == debian_places(folder)
    assert query(rpm, "-c").split() == [f"/etc/{PACKAGE_NAME}.conf"]
    assert "preuninstall scriptlet" in query(rpm, "--scripts")
    # The program is static: the package needs only a shell and properties of rpm itself.
    assert set(re.findall(r"^[^\s(]+", query(rpm, "--requires"), re.MULTILINE)) <= {
        "/bin/sh", "config", "rpmlib",
    }  # fmt: skip


def query(rpm: Path, option: str) -> str:
    return subprocess.run(
        ["rpm", "-qp", option, rpm], check=True, capture_output=True, text=True
    ).stdout


def script_of(text: str, begin: str, end: str) -> str:
    (script,) = re.findall(rf"^{begin}\n(.*?)^{end}", text, re.MULTILINE | re.DOTALL)
    return str(script)


@pytest.mark.parametrize(
    ("number", "is_stopped", "is_remembered"), [(1, False, False), (2, True, True)]
)
def test_an_upgrade_stops_the_server_and_remembers_its_policy(
    number: int, is_stopped: bool, is_remembered: bool, folder: Path
) -> None:
    """RPM's script before the installation gets 1 for a new package, and 2 for an upgrade."""
    spec = (folder / f"{PACKAGE_NAME}.spec").read_text()
    stopped, remembered = run_script(script_of(spec, "%pre", "%post"), [str(number)], folder)
    assert (stopped, remembered) == (is_stopped, is_remembered)


def run_script(script: str, arguments: list[str], folder: Path) -> tuple[bool, bool]:
    """Runs a script with a stand-in for the program. Returns whether the server was stopped and its
    policy remembered.
    """
    program, stopped, remembered = (
        folder / name for name in (PACKAGE_NAME, "stopped", "remembered")
    )
    program.write_text(
        f'#!/bin/sh\n[ "$1" = status ] && echo "Policy: rr"\n[ "$1" != stop ] || touch "{stopped}"\n'
    )
    program.chmod(0o755)
    stopped.unlink(missing_ok=True)
    local = script.replace(f"/run/{PACKAGE_NAME}.upgrade", f"'{remembered}'").replace(
        "/etc/systemd", str(folder / "etc")
    )
    subprocess.run(
        ["sh", "-c", local, "script", *arguments],
        check=True,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )
    if remembered.exists():
        assert remembered.read_text() == "rr\n"
    return stopped.exists(), remembered.exists()


def test_arch_checks_the_tarball(folder: Path) -> None:
    script = '. ./PKGBUILD && echo "$sha256sums  ${source[0]}" | sha256sum --check'
    subprocess.run(["bash", "-c", script], check=True, cwd=folder, capture_output=True)
