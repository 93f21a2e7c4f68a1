# SPDX-License-Identifier: MIT
"""Tests that the same arguments give the same traces on other systems, whose root file
systems are built here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.tools import require_compiler

pytestmark = [pytest.mark.long, pytest.mark.spike, pytest.mark.xdist_group("other_systems")]

POLICIES = ("rr", "mlfq", "lottery", "stride", "cfs")
RUN = ("run", "--workload", "mixed", "--policy", ",".join(POLICIES), "--cpus", "2", "-q", "--out")
PACKAGES = "ca-certificates,python3,python3-venv,libstdc++6"
PROGRAMS = ("mmdebstrap", "unshare", "chroot")
CERTIFICATES = "certificates.crt"
"""The host's certificates, since its network may use some that no system ships."""
SCRIPT = """
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cp /etc/resolv.conf /etc/hosts "$1/etc/"
root=$1
shift
exec chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


@dataclass(frozen=True)
class System:
    name: str
    release: str
    archive: str
    source: str


SYSTEMS = (
    System(
        "Debian 13",
        "trixie",
        "http://deb.debian.org/debian",
        "deb {archive} {release} main",
    ),
    System(  # Debian lacks Ubuntu's keys: TLS authenticates the archive
        "Ubuntu 24.04",
        "noble",
        "https://archive.ubuntu.com/ubuntu",
        "deb [trusted=yes] {archive} {release} main universe",
    ),
)


def need(system: System) -> None:
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing or os.geteuid():
        pytest.skip(f"root file systems are made by root, with {', '.join(missing or PROGRAMS)}")
    if not require_compiler().is_pinned:
        pytest.skip("SCHEDLAB_CLANG names another compiler, whose kernel has other instructions")
    address = f"{system.archive}/dists/{system.release}/Release"
    try:
        urllib.request.urlopen(address, timeout=30).close()
    except OSError as error:
        pytest.skip(f"{address} cannot be reached: {error}")


def hashes(runs: Path) -> dict[str, str]:
    hash_by_policy = {
        path.parent.name.partition("-")[0]: file_hash(path) for path in runs.glob("*/trace.bin")
    }
    assert set(hash_by_policy) == set(POLICIES)
    return hash_by_policy


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    runs = tmp_path_factory.mktemp("here") / "runs"
    subprocess.run([ROOT / "schedlab", *RUN, runs], check=True, timeout=900)
    return hashes(runs)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_mixed_has_the_same_traces(system: System, here: dict[str, str], tmp_path: Path) -> None:
    need(system)
    root = tmp_path / "root"
    source = system.source.format(archive=system.archive, release=system.release)
    options = ("--variant=minbase", f"--include={PACKAGES}", "--quiet")
    subprocess.run(["mmdebstrap", *options, system.release, root, source], check=True, timeout=1800)
    copy_checkout(root / "checkout")
    certificates = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
    shutil.copy(certificates, root / CERTIFICATES)
    trusted = [f"{name}=/{CERTIFICATES}" for name in ("SSL_CERT_FILE", "PIP_CERT")]
    command = ["unshare", "--mount", "sh", "-euc", SCRIPT, "sh", str(root), *trusted]
    subprocess.run([*command, "/checkout/schedlab", *RUN, "/runs"], check=True, timeout=1800)
    assert hashes(root / "runs") == here


def copy_checkout(path: Path) -> None:
    """Copies the current checkout, without build products."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name, follow_symlinks=False)
