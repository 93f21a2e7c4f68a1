# SPDX-License-Identifier: MIT
"""Tests the guest's packages: how they are found, fetched with the host's apt, and cached."""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from debian_archive import Archive, shared_library
from schedlab.base.files.atomic import file_hash
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, mirror, packages
from schedlab.machines.linux.kernel import NEEDED_OPTIONS, read_user_kernel

needs_apt = pytest.mark.skipif(
    not all(map(shutil.which, ("apt-get", "dpkg-deb"))), reason="no apt-get and dpkg-deb are here"
)
GOOD = "".join(f"{name}=y\n" for name in NEEDED_OPTIONS)
KERNELS = {"7.9.1": GOOD, "7.10.2": GOOD, "7.11.3": GOOD.replace("SCHED_CLASS_EXT=y", "EXT=n")}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Archive with all required packages, some others, and three kernels."""
    folder = tmp_path_factory.mktemp("archive")
    made = Archive(folder)
    add_kernels(made)
    for name in ("libelf-dev", "zlib1g-dev", "libzstd-dev", "libfuse3-dev", "libbpf-dev"):
        made.add("bookworm", name, "1", {f"usr/include/{name}.h": b"of the release\n"})
    made.add("bookworm-backports", "libbpf-dev", "2", {"usr/include/libbpf-dev.h": b"newer\n"})
    add_programs(made, folder / "built")
    made.publish()
    return made


def add_kernels(made: Archive) -> None:
    suite = packages.KERNEL_SUITE
    for version, config in KERNELS.items():
        name = f"{version}+deb13-cloud-amd64"
        folder = f"usr/lib/modules/{name}"
        wants = f"linux-base-{name} (= {version}-1)"
        image = {f"{folder}/vmlinuz": f"kernel {version}".encode()}
        made.add(suite, f"linux-binary-{name}", f"{version}-1", image, wants)
        made.add(suite, f"linux-base-{name}", f"{version}-1", {f"{folder}/config": config.encode()})
    made.add(suite, "linux-binary-unsigned-8.0+deb13-cloud-amd64", "8.0-1", {"x": b""})
    made.add(suite, "linux-binary-8.0+deb13-amd64", "8.0-1", {"x": b""})
    made.add(suite, "linux-bpf-dev", "7.10.2-1", {"usr/include/vmlinux.h": b"types\n"})


def add_programs(made: Archive, built: Path) -> None:
    """Adds sysbench, which needs libone, which needs libtwo; its other dependency has no needed
    library."""
    two = shared_library(built / "libtwo.so.2")
    one = shared_library(built / "libone.so.1", two)
    gcc = shared_library(built / "libgcc_s.so.1")
    lib = "usr/lib/x86_64-linux-gnu"
    for package, path in packages.PROGRAMS.items():
        if package != "sysbench":
            made.add("bookworm", package, "1", {path: b"#!/bin/sh\n"})
    sysbench = shared_library(built / "sysbench", one)
    wants = "libone1 (>= 1) | libother1, heavy"
    made.add("bookworm", "sysbench", "1:1.0", {"usr/bin/sysbench": sysbench}, wants)
    made.add("bookworm", "libone1", "1", {f"{lib}/libone.so.1": one}, "libtwo2, libc6")
    made.add("bookworm", "libtwo2", "1", {f"{lib}/libtwo.so.2": two})
    made.add("bookworm", "libc6", "1", {f"{lib}/libc.so.6": b""}, "libgcc-s1")
    made.add("bookworm", "libgcc-s1", "1", {f"{lib}/libgcc_s.so.1": gcc})
    made.add("bookworm", "heavy", "1", {"usr/share/heavy": bytes(1000)}, "heavier")
    made.add("bookworm", "heavier", "1", {"usr/share/heavier": bytes(1000)})


@pytest.fixture
def cache(tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of a user of that archive, whose packages are unsigned."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ca che"))
    monkeypatch.setenv(mirror.MIRROR_VARIABLE, archive.address)
    monkeypatch.setattr(apt, "TRUST_OPTION", "trusted=yes")
    monkeypatch.setattr(apt, "KEYRING", tmp_path)
    packages.packages.cache_clear()
    yield packages.packages_folder()
    packages.packages.cache_clear()  # other tests must not use these results


@pytest.fixture(scope="module")
def fetched(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache after a first start."""
    place = tmp_path_factory.mktemp("fetched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place))
        patch.setenv(mirror.MIRROR_VARIABLE, archive.address)
        patch.setattr(apt, "TRUST_OPTION", "trusted=yes")
        patch.setattr(apt, "KEYRING", place)
        packages.packages.cache_clear()
        packages.packages()
        return packages.packages_folder()


@pytest.fixture
def package_cache(cache: Path, fetched: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cache of an earlier start, without a network."""
    shutil.copytree(fetched, cache)
    monkeypatch.setenv(mirror.MIRROR_VARIABLE, "file:/there/is/none")
    return cache


@needs_apt
def test_the_newest_kernel_that_serves_and_all_that_goes_with_it(package_cache: Path) -> None:
    package_set = packages.packages()
    assert package_set.kernel.release == "7.10.2+deb13-cloud-amd64"
    assert package_set.kernel.image.read_text() == "kernel 7.10.2"
    headers = package_set.sdk / "usr" / "include"
    assert (headers / "vmlinux.h").read_text() == "types\n"
    assert (headers / "libbpf-dev.h").read_text() == "newer\n"
    assert (headers / "libelf-dev.h").read_text() == "of the release\n"
    assert sorted(path.name for path in package_cache.iterdir()) == [
        "lock",
        "packages.lock.json",
        "trees",
    ]


@needs_apt
@pytest.mark.usefixtures("package_cache")
def test_of_what_programs_depend_on_only_the_libraries_they_need(archive: Archive) -> None:
    package_set = packages.packages()
    assert package_set.needs["sysbench"] == ["libgcc_s.so.1", "libone.so.1", "libtwo.so.2"]
    assert package_set.needs["busybox"] == []
    for name in package_set.needs["sysbench"]:
        assert package_set.library(name).read_bytes().startswith(b"\x7fELF")
    pinned = {package.name: package for package in package_set.pins["programs"]}
    assert set(pinned) == {*packages.PROGRAMS, "libone1", "libtwo2", "libgcc-s1"}
    deb = archive.folder / "pool" / "sysbench_1%3a1.0_amd64.deb"
    assert pinned["sysbench"].sha256 == file_hash(deb)


@needs_apt
def test_a_later_start_needs_neither_network_nor_apt(
    package_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert packages.packages().kernel.image.exists()


@needs_apt
@pytest.mark.parametrize("damage", ["file", "lock file"])
def test_what_is_damaged_is_fetched_again(
    package_cache: Path,
    archive: Archive,
    damage: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    image = packages.packages().kernel.image
    before = image.read_bytes()
    packages.packages.cache_clear()
    if damage == "file":
        image.write_bytes(before[:-1] + b"?")
    else:
        (package_cache / "packages.lock.json").write_text('{"format": 1, "groups": {"kernel": [')
    with pytest.raises(MachineUnfit, match=r"could not be fetched.*SCHEDLAB_DEBIAN_MIRROR"):
        packages.packages()
    monkeypatch.setenv(mirror.MIRROR_VARIABLE, archive.address)
    assert packages.packages().kernel.image.read_bytes() == before
    assert ("damaged or missing" in capsys.readouterr().err) == (damage == "file")


@needs_apt
@pytest.mark.parametrize("place", ["kernel", "libraries"])
def test_cut_or_deleted_file_is_detected(package_cache: Path, place: str) -> None:
    path = next(
        candidate
        for candidate in (packages.packages().tree / place).rglob("*")
        if candidate.is_file()
    )
    path.write_bytes(path.read_bytes()[:-1])
    assert packages.cached_packages() is None
    path.unlink()
    assert packages.cached_packages() is None


@needs_apt
def test_package_with_another_hash_is_refused(
    cache: Path, tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(archive.folder, copy, ignore=shutil.ignore_patterns("build", "built"))
    with next(copy.glob("pool/linux-base-7.11*")).open("r+b") as deb:
        deb.write(b"?")
    monkeypatch.setenv(mirror.MIRROR_VARIABLE, f"file:{copy}")
    with pytest.raises(MachineUnfit, match="could not be fetched"):
        packages.packages()
    assert [path.name for path in cache.iterdir()] == ["lock"]


@needs_apt
def test_starts_side_by_side_fetch_once_and_clear_up_after_a_killed_one(
    cache: Path, tmp_path: Path
) -> None:
    (cache / "fetch-killed" / "tree").mkdir(parents=True)
    (cache / "fetch-pins").write_text("half")
    code = "from schedlab.machines.linux import apt, packages; apt.TRUST_OPTION = 'trusted=yes'; "
    code += f"apt.KEYRING = packages.Path({str(tmp_path)!r}); print(packages.packages().tree)"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/python"}
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [start.communicate(timeout=120) for start in starts]
    assert [start.returncode for start in starts] == [0, 0], ends
    assert ends[0][0] == ends[1][0]
    assert sum("finding the guest's packages" in messages for _, messages in ends) == 1
    assert not list(cache.glob("fetch-*"))


# --- a kernel that the user names -----------------------------------------------------------------


def boot_image(config: str, release: str = "7.3.4-mine") -> bytes:
    """Returns the head of the boot protocol, and a packed "kernel" with a configuration in it."""
    head = bytearray(0x400)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x100)
    head[0x300 : 0x301 + len(release)] = release.encode() + b"\0"
    kernel = b"\x7fELF" + bytes(100)
    if config:
        kernel += b"IKCFG_ST" + gzip.compress(config.encode()) + b"IKCFG_ED"
    packed = gzip.compress(kernel) + struct.pack("<I", len(kernel))
    struct.pack_into("<II", head, 0x248, 0, len(packed))
    return bytes(head) + packed


@pytest.mark.skipif(not shutil.which("gzip"), reason="no gzip")
@pytest.mark.parametrize("place", ["inside", "config", "config-7.3.4-mine", "nowhere"])
@pytest.mark.parametrize("fuse_setting", ["y", "m", ""])
def test_a_named_kernel_is_checked_by_its_configuration(
    tmp_path: Path, place: str, fuse_setting: str
) -> None:
    config = GOOD.replace(
        "CONFIG_FUSE_FS=y", f"CONFIG_FUSE_FS={fuse_setting}" if fuse_setting else ""
    )
    image = tmp_path / "bzImage"
    image.write_bytes(boot_image(config if place == "inside" else ""))
    if place not in ("inside", "nowhere"):
        (tmp_path / place).write_text(config)
    if fuse_setting == "y" or place == "nowhere":
        assert read_user_kernel(image).release == "7.3.4-mine"
    else:
        with pytest.raises(MachineUnfit, match="CONFIG_FUSE_FS"):
            read_user_kernel(image)


@pytest.mark.parametrize("content", [b"", b"\x7fELF and so on", bytes(1000)])
def test_what_is_no_kernel(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(MachineUnfit, match="not a bootable x86-64 kernel"):
        read_user_kernel(tmp_path / "file")
    with pytest.raises(MachineUnfit, match="cannot be read: No such file"):
        read_user_kernel(tmp_path / "none")
