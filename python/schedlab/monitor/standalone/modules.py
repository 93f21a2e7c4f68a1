# SPDX-License-Identifier: MIT
"""Bundles JavaScript modules into one script, because a page opened as a file cannot load modules.

The bundler supports only the import and export forms that the page's modules use, and rejects other
forms. An npm bundler would require Node.js for every change of the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from schedlab.errors import BuildFailed

_IMPORT = re.compile(r'^import (?:(\{[^}]*\}|\* as \w+) from )?"([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_HANDED_ON = re.compile(r'^export \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled(entry: Path, replacements: Mapping[Path, Path]) -> str:
    """Returns one script with a module and all its imports.

    `replacements` maps modules to their substitutes. Raises BuildFailed for circular imports and
    unsupported forms.
    """
    bundle = _Bundle(replacements)
    bundle.add(entry)
    return f'"use strict";\n(() => {{\n{"".join(bundle.parts)}}})();\n'


class _Bundle:
    def __init__(self, replacements: Mapping[Path, Path]) -> None:
        self.replacements = {old.resolve(): new.resolve() for old, new in replacements.items()}
        self.parts: list[str] = []
        self.names: dict[Path, str] = {}
        """Variable of each module's exports; empty while the module is being added."""

    def add(self, path: Path) -> str:
        """Adds a module after its imports, once; returns the variable of its exports."""
        path = self.replacements.get(path.resolve(), path.resolve())
        if path in self.names:
            if not self.names[path]:
                raise BuildFailed(f"{path}: it imports itself through other modules")
            return self.names[path]
        self.names[path] = ""
        body = self._body(path)
        name = self.names[path] = f"module{len(self.parts)}"
        self.parts.append(f"const {name} = (() => {{\n{body}}})();\n")
        return name

    def _body(self, path: Path) -> str:
        exported: dict[str, str] = {}

        def imported(match: re.Match[str]) -> str:
            name = self.add(path.parent / match[2])
            if not match[1]:
                return ""
            if match[1].startswith("*"):
                return f"const {match[1].removeprefix('* as ')} = {name};\n"
            return f"const {match[1].replace(' as ', ': ')} = {name};\n"

        def handed_on(match: re.Match[str]) -> str:
            name = self.add(path.parent / match[2])
            for export in match[1].split(","):
                exported[export.strip()] = f"{name}.{export.strip()}"
            return ""

        def declared(match: re.Match[str]) -> str:
            exported[match[2]] = match[2]
            return f"{match[1]} {match[2]}"

        text = path.read_text()
        for form, change in (
            (_IMPORT, imported),
            (_HANDED_ON, handed_on),
            (_EXPORT, declared),
        ):
            text = form.sub(change, text)
        if other := _OTHER.search(text):
            raise BuildFailed(f"{path}: the page's bundler does not support this form: {other[0]}")
        # the base of the module's relative addresses
        text = text.replace("import.meta.url", "document.baseURI")
        pairs = ", ".join(f"{name}: {value}" for name, value in exported.items())
        return f"{text}return {{ {pairs} }};\n"
