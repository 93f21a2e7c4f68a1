# SPDX-License-Identifier: MIT
"""Finds mirrors of Debian's packages: this host's sources, or debootstrap's default."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import MachineUnfit

VARIABLE = "SCHEDLAB_DEBIAN_MIRROR"
_DEBIAN_SUITES = {
    *("bullseye", "bookworm", "trixie", "forky", "duke", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
}
_CLIENT = (
    Path("/usr/share/debootstrap/scripts/bookworm"),
    Path("/usr/share/debootstrap/scripts/debian-common"),
    Path("/usr/sbin/debootstrap"),
)


@dataclass(frozen=True)
class Source:
    """One package source of an apt configuration."""

    uri: str
    suite: str
    components: tuple[str, ...]


def mirrors(etc: Path = Path("/etc/apt"), client: tuple[Path, ...] = _CLIENT) -> list[str]:
    """Returns mirrors to try, the most likely first; signatures decide whether a mirror is genuine."""
    named = os.environ.get(VARIABLE)
    if named:
        return [named.rstrip("/")]
    uris = [source.uri.rstrip("/") for source in host_sources(etc) if serves(source)]
    uris += [address.rstrip("/") for address in client_defaults(client)]
    if not uris:
        raise MachineUnfit(
            "this host names no mirror of Debian packages; install debootstrap, or "
            f"set {VARIABLE} to a mirror"
        )
    return list(dict.fromkeys(uris))


def serves(source: Source) -> bool:
    """Returns whether a source looks like Debian's main archive, not security updates or a third party."""
    base = re.sub(r"-(updates|backports|proposed-updates)$", "", source.suite)
    fetched = ":" in source.uri and not source.uri.startswith("cdrom:")
    return fetched and base in _DEBIAN_SUITES and "main" in source.components


def host_sources(etc: Path) -> Iterator[Source]:
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


def line_sources(text: str) -> Iterator[Source]:
    """Yields sources in the one-line format: deb [options] URI SUITE COMPONENT…"""
    for line in text.splitlines():
        content = re.sub(r"^\s*deb\s+\[[^]]*\]", "deb ", line.partition("#")[0])
        words = content.split()
        if len(words) >= 4 and words[0] == "deb":
            yield Source(words[1], words[2], tuple(words[3:]))


def stanza_sources(text: str) -> Iterator[Source]:
    """Yields sources in the stanza format (deb822)."""
    for fields in stanzas(text):
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0", "without", "off"):
            continue
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, components)


def stanzas(text: str) -> Iterator[dict[str, str]]:
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


def client_defaults(client: tuple[Path, ...]) -> Iterator[str]:
    """Yields debootstrap's default mirrors for Debian, from its scripts."""
    for path in client:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        yield from re.findall(
            r"""^\s*(?:default_mirror\s+|DEF_MIRROR=)["']?([^\s"']+)""", text, re.MULTILINE
        )
