# SPDX-License-Identifier: MIT
"""Makes a small archive of Debian packages in a folder, which the host's real apt reads (file:)."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.base.toolchain.tools import require_compiler


@dataclass
class Archive:
    """An archive; `address` is its entry in a list of sources."""

    folder: Path
    suites: dict[str, list[Path]] = field(default_factory=dict)
    entries: dict[Path, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"file:{self.folder}"

    def add(
        self,
        suite: str,
        name: str,
        version: str,
        files: Mapping[str, bytes | Path],
        depends: str = "",
    ) -> Path:
        """Adds one package, and returns its path."""
        place = self.folder / "build" / f"{name}_{version}"
        for path, content in files.items():
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
            target.chmod(0o755)
        control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
        control += "Maintainer: nobody <nobody@localhost>\nDescription: for tests\n"
        control += f"Depends: {depends}\n" if depends else ""
        (place / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (place / "DEBIAN" / "control").write_text(control)
        pool = self.folder / "pool"
        pool.mkdir(exist_ok=True)
        deb = pool / f"{name}_{version.replace(':', '%3a')}_amd64.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(place), str(deb)]
        subprocess.run(command, capture_output=True, check=True)
        self.entries[deb] = control
        self.suites.setdefault(suite, []).append(deb)
        return deb

    def publish(self) -> None:
        """Writes the lists for the current packages."""
        for suite, debs in self.suites.items():
            index = "".join(f"{self.entries[deb]}{described(deb)}\n" for deb in debs)
            path = self.folder / "dists" / suite
            (path / "main" / "binary-amd64").mkdir(parents=True, exist_ok=True)
            (path / "main" / "binary-amd64" / "Packages").write_text(index)
            late = "NotAutomatic: yes\nButAutomaticUpgrades: yes\n" if "backports" in suite else ""
            digest = hashlib.sha256(index.encode()).hexdigest()
            (path / "Release").write_text(
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\n{late}"
                "Date: Sat, 01 Jan 2022 00:00:00 UTC\nArchitectures: amd64\nComponents: main\n"
                f"SHA256:\n {digest} {len(index)} main/binary-amd64/Packages\n"
            )


def described(deb: Path) -> str:
    content = deb.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return f"Filename: pool/{deb.name}\nSize: {len(content)}\nSHA256: {digest}\n"


def shared_library(path: Path, *needs: Path) -> Path:
    """Returns an ELF file with that name, which needs the other names as libraries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_name(f"{path.name}.c")
    source.write_text("int one;\n")
    command = [*require_compiler().host, "-nostdlib", "-shared"]
    command += ["-Wl,--no-as-needed", f"-Wl,-soname,{path.name}", "-o", str(path), str(source)]
    subprocess.run([*command, *map(str, needs)], check=True)
    return path
