# SPDX-License-Identifier: MIT
"""Finds mirrors of Debian's packages: those of this host, or debootstrap's default."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import MachineUnfit

MIRROR_VARIABLE = "SCHEDLAB_DEBIAN_MIRROR"
_DEBIAN_SUITES = {
    *("bullseye", "bookworm", "trixie", "forky", "duke", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
}
_DEBOOTSTRAP_SCRIPTS = (
    Path("/usr/share/debootstrap/scripts/bookworm"),
    Path("/usr/share/debootstrap/scripts/debian-common"),
    Path("/usr/sbin/debootstrap"),
)


@dataclass(frozen=True)
class PackageSource:
    """One package source of an apt configuration."""

    uri: str
    suite: str
    components: tuple[str, ...]


def list_mirrors(
    etc: Path = Path("/etc/apt"), client: tuple[Path, ...] = _DEBOOTSTRAP_SCRIPTS
) -> list[str]:
    """Returns the mirrors to try, the most promising first.

    They need not be trusted, because packages are signed.
    """
    named = os.environ.get(MIRROR_VARIABLE)
    if named:
        return [named.rstrip("/")]
    uris = [source.uri.rstrip("/") for source in host_sources(etc) if is_main_archive(source)]
    uris += [address.rstrip("/") for address in debootstrap_mirrors(client)]
    if not uris:
        raise MachineUnfit(
            "this host names no mirror of Debian packages; install debootstrap, or "
            f"set {MIRROR_VARIABLE} to a mirror"
        )
    return list(dict.fromkeys(uris))


def is_main_archive(source: PackageSource) -> bool:
    """Returns whether a source looks like Debian's main archive (not security updates or a third party)."""
    base_suite = re.sub(r"-(updates|backports|proposed-updates)$", "", source.suite)
    is_remote = ":" in source.uri and not source.uri.startswith("cdrom:")
    return is_remote and base_suite in _DEBIAN_SUITES and "main" in source.components


def host_sources(etc: Path) -> Iterator[PackageSource]:
    """Yields all package sources of this host's apt, in its order."""
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        if path.suffix == ".sources":
            yield from stanza_sources(text)
        elif path.suffix == ".list":
            yield from line_sources(text)


def line_sources(text: str) -> Iterator[PackageSource]:
    """Yields sources in the one-line format: deb [options] URI SUITE COMPONENT…"""
    for line in text.splitlines():
        content = re.sub(r"^\s*deb\s+\[[^]]*\]", "deb ", line.partition("#")[0])
        words = content.split()
        if len(words) >= 4 and words[0] == "deb":
            yield PackageSource(words[1], words[2], tuple(words[3:]))


def stanza_sources(text: str) -> Iterator[PackageSource]:
    """Yields sources in the stanza format (deb822)."""
    for fields in parse_stanzas(text):
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0", "without", "off"):
            continue
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield PackageSource(uri, suite, components)


def parse_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yields each stanza as a dictionary with lower-case field names; skips comments."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in re.split(r"\n\s*\n", lines):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t"):
                fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if fields:
            yield fields


def debootstrap_mirrors(client: tuple[Path, ...]) -> Iterator[str]:
    """Yields debootstrap's default mirrors for Debian, from its scripts."""
    for path in client:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        yield from re.findall(
            r"""^\s*(?:default_mirror\s+|DEF_MIRROR=)["']?([^\s"']+)""", text, re.MULTILINE
        )
