# SPDX-License-Identifier: MIT
"""Bundles JavaScript modules into one script, because a page opened as a file cannot load modules.

The bundler supports only the forms of `import` and `export` that the page uses, and rejects others.
An npm bundler would require Node.js for every change of the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from schedlab.errors import BuildFailed

_IMPORT = re.compile(r'^import (?:(\{[^}]*\}|\* as \w+) from )?"([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_REEXPORT = re.compile(r'^export \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_UNSUPPORTED = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled(entry: Path, replacements: Mapping[Path, Path]) -> str:
    """Returns one script that contains a module and everything it imports.

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
        """Adds a module after the modules that it imports; does nothing if it was added before.

        Returns the JavaScript variable that holds the module's exports.
        """
        path = self.replacements.get(path.resolve(), path.resolve())
        if path in self.names:
            if not self.names[path]:
                raise BuildFailed(
                    f"{path}: imports itself through other modules; remove one of these imports"
                )
            return self.names[path]
        self.names[path] = ""
        body = self._function_body(path)
        name = self.names[path] = f"module{len(self.parts)}"
        self.parts.append(f"const {name} = (() => {{\n{body}}})();\n")
        return name

    def _function_body(self, path: Path) -> str:
        """Returns the module's text as the body of a function that returns its exports."""
        exported: dict[str, str] = {}

        def imported(match: re.Match[str]) -> str:
            name = self.add(path.parent / match[2])
            if not match[1]:
                return ""
            if match[1].startswith("*"):
                return f"const {match[1].removeprefix('* as ')} = {name};\n"
            return f"const {match[1].replace(' as ', ': ')} = {name};\n"

        def reexport(match: re.Match[str]) -> str:
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
            (_REEXPORT, reexport),
            (_EXPORT, declared),
        ):
            text = form.sub(change, text)
        if other := _UNSUPPORTED.search(text):
            raise BuildFailed(
                f"{path}: the page's bundler does not support this form: {other[0]}"
                "; write import {a} from, import * as b from, export {a} from,"
                " or export before a function, const or class"
            )
        # the base of the module's relative addresses
        text = text.replace("import.meta.url", "document.baseURI")
        pairs = ", ".join(f"{name}: {value}" for name, value in exported.items())
        return f"{text}return {{ {pairs} }};\n"
