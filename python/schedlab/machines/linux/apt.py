# SPDX-License-Identifier: MIT
"""A private apt: it fetches and verifies Debian packages, and never installs any.

It has separate sources, lists and archives. apt and dpkg-deb check signatures, compare versions,
resolve dependencies and unpack.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path

from schedlab.base.display.terminal import say
from schedlab.base.toolchain.tools import run_captured
from schedlab.errors import MachineUnfit
from schedlab.machines.linux.mirror import parse_stanzas

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TRUST_OPTION = f"signed-by={KEYRING}"
"""Option of a source list entry that names the trusted keys."""
ARCHITECTURE = "amd64"
_HOST_SETTINGS = re.compile(
    r"Acquire::(?:https?|tor|Retries|Check-Valid-Until|Check-Date|Force\w+|Queue-Mode)\b"
)
"""The host's apt settings that the private apt also uses: access to mirrors, but no hooks."""


@dataclass(frozen=True)
class Package:
    """One version of a package, as described by the archive's signed list."""

    name: str
    version: str
    sha256: str
    depends: str = ""


def require_apt_programs() -> None:
    """Raises MachineUnfit if this host cannot fetch and unpack Debian packages."""
    missing = [name for name in ("apt-get", "apt-cache", "dpkg-deb") if not shutil.which(name)]
    if missing:
        raise MachineUnfit(
            f"this host lacks {' and '.join(missing)}, which unpack the guest's Debian"
            " packages; install the packages apt and dpkg"
        )


class PrivateApt:
    """Access to some suites of one mirror, with all files in a private folder."""

    def __init__(self, folder: Path, mirror: str, suites: Iterable[str]) -> None:
        self.folder = folder
        self.suites = tuple(suites)
        self.configuration = folder / "apt.conf"
        for name in ("lists/partial", "archives/partial", "etc"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        options = f"arch={ARCHITECTURE} {TRUST_OPTION}"
        (folder / "sources.list").write_text(
            "".join(f"deb [{options}] {mirror} {suite} main\n" for suite in self.suites)
        )
        self.configuration.write_text(self._settings())

    def _settings(self) -> str:
        places = {
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "Dir::Cache::archives": self.folder / "archives",
            "Dir::Log": self.folder,
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": self.folder / "etc",
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": self.folder / "etc",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": self.folder / "etc",
            "APT::Architecture": ARCHITECTURE,
            "Acquire::Languages": "none",
            # Fetch as the current user: apt's own user may not write to this user's cache.
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
        }
        settings = "".join(f'{name} "{value}";\n' for name, value in places.items())
        return f'{settings}APT::Architectures {{ "{ARCHITECTURE}"; }};\n{host_settings()}'

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Runs an apt command and returns its output. Raises AptFailed with apt's message."""
        result = run_captured(
            command,
            cwd=cwd or self.folder,
            env={**os.environ, "APT_CONFIG": str(self.configuration), "LC_ALL": "C.UTF-8"},
        )
        if result.returncode:
            message = (result.stderr or result.stdout).strip()
            raise AptFailed(f"{' '.join(command[:3])} failed: {message}")
        return result.stdout

    def update(self) -> None:
        """Fetches the package lists and checks their signatures."""
        self.run("apt-get", "-q", "update", "--error-on=any")

    def names(self, pattern: str) -> list[str]:
        """Returns the names of packages that match a regular expression completely."""
        full_pattern = re.compile(pattern)
        return [
            name
            for name in self.run("apt-cache", "pkgnames").split()
            if full_pattern.fullmatch(name)
        ]

    def describe(self, names: Iterable[str]) -> list[Package]:
        """Returns the newest version of each package; NAME=VERSION or NAME/SUITE selects another."""
        text = self.run("apt-cache", "show", "--no-all-versions", *names)
        return [
            Package(
                stanza["package"], stanza["version"], stanza["sha256"], join_dependencies(stanza)
            )
            for stanza in parse_stanzas(text)
        ]

    def closure(self, names: Iterable[str]) -> dict[str, Package]:
        """Returns the packages, by name, that apt would install into an empty system."""
        text = self.run("apt-get", "install", "--simulate", *names)
        chosen = re.findall(r"^Inst (\S+) \((\S+) ", text, re.MULTILINE)
        packages = self.describe(f"{name}={version}" for name, version in chosen)
        return {package.name: package for package in packages}

    def download(self, packages: Iterable[Package], folder: Path) -> None:
        """Fetches and checks .deb files."""
        versions = [f"{package.name}={package.version}" for package in packages]
        if versions:
            others = f" and {len(versions) - 1} more" if len(versions) > 1 else ""
            say(f"schedlab: fetching {versions[0]}{others}")
            self.run("apt-get", "-q", "download", *versions, cwd=folder)


def join_dependencies(fields: Mapping[str, str]) -> str:
    """Returns a package's pre-dependencies and dependencies."""
    both = (fields.get("pre-depends", ""), fields.get("depends", ""))
    return ", ".join(filter(None, both))


class AptFailed(MachineUnfit):
    """An apt command failed; the message is apt's own."""


def host_settings() -> str:
    """Returns this host's access to mirrors, such as proxies, as lines of an apt configuration."""
    result = run_captured(["apt-config", "dump"])
    return "".join(f"{line}\n" for line in result.stdout.splitlines() if _HOST_SETTINGS.match(line))


def newest_first(packages: Iterable[Package]) -> list[Package]:
    """Sorts packages by Debian's version order, the newest first."""

    def compare(one: Package, other: Package) -> int:
        return -1 if is_newer(one.version, other.version) else 1

    return sorted(packages, key=cmp_to_key(compare))


def is_newer(one: str, other: str) -> bool:
    """Compares versions with dpkg."""
    command = ["dpkg", "--compare-versions", one, "gt", other]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0
