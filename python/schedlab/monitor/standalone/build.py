# SPDX-License-Identifier: MIT
"""Builds page/schedlab.html from the monitor's page, its session and the simulator as WebAssembly."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from schedlab.base.toolchain import committed
from schedlab.base.toolchain.build import build_wasm_module
from schedlab.base.toolchain.committed import MODULE_ID, sources_hash
from schedlab.base.toolchain.policies import build_policy_list, describe_unknown_name
from schedlab.base.toolchain.tools import require_compiler
from schedlab.errors import BuildFailed, WrongUsage, format_parameter
from schedlab.monitor.files import PAGE_FOLDER as MONITOR
from schedlab.monitor.lesson import built_in_lessons, read_lesson
from schedlab.monitor.standalone.modules import bundled
from schedlab.paths import ROOT
from schedlab.report.html import HAND_OVER_SCRIPT, SHARED_FILES, TEMPLATES, THEME, vega_bundle
from schedlab.workload import workload_files
from schedlab.workload.palette import read_palette
from schedlab.workload.text import format_workload

PAGE = ROOT / "page"
FILE = committed.PAGE
BYTES_MAX = 4_000_000
TICK_NS = 10_000_000
"""Tick length (ns) for converting workload files to simulator text."""
SEED = 1
"""Seed for converting workload files to simulator text."""

_NOT_IN_THE_PAGE = ROOT / "sim" / "sched_ext"
_SOURCES = (
    *(
        "page/*.c",
        "page/*.h",
        "page/*.js",
        "page/*.css",
        "page/*.json",
        "page/*.mk",
    ),
    *(
        "abi/*.h",
        "policies/**/*.[ch]",
        "sim/**/*.[chS]",
        "sim/costs/*.json",
        "model/*.[ch]",
        "model/*.mk",
        "sim/*.mk",
    ),
    *("python/schedlab/monitor/page/**/*", "python/schedlab/monitor/standalone/*.py"),
    *(f"python/schedlab/report/templates/{name}" for name in SHARED_FILES),
    *(
        "python/schedlab/workload/*.py",
        "python/schedlab/monitor/lessons/*.json",
    ),
    *("python/requirements.lock", "workloads/files/**/*.json", "tools/policy_list.c"),
)
"""All inputs of the page except the compiler; their hash shows whether the page is up to date."""
_STYLE = re.compile(r'<link rel="stylesheet"([^>]*?) href="([^"]+)"([^>]*)>\n')
_SOURCE_HASH = re.compile(r'<meta name="sources" content="(\w+)">')


def sources() -> list[Path]:
    """Returns the page's source files."""
    paths = {path for pattern in _SOURCES for path in ROOT.glob(pattern) if path.is_file()}
    outside = {path for path in paths if path.is_relative_to(_NOT_IN_THE_PAGE)}
    return sorted(paths - outside - {FILE})


def hash_of(files: Iterable[Path]) -> str:
    """Returns a hash of the files' paths and contents."""
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def hash_in(page: str) -> str:
    """Returns the hash of the sources that a built page contains, or "" if it has none."""
    match = _SOURCE_HASH.search(page)
    return match[1] if match else ""


def make_page() -> Path:
    """Builds the page and returns its path."""
    FILE.write_text(page_of(build_wasm_module()))
    return FILE


def write_policy_module(name: str, place: Path) -> Path:
    """Writes the WebAssembly simulator, which has all policies including `name`, to `place`.

    Returns `place`. Raises WrongUsage if there is no such policy or the file cannot be written.
    """
    source = ROOT / "policies" / f"{name}.c"
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or not source.exists():
        known = [path.stem for path in sorted((ROOT / "policies").glob("*.c"))]
        raise WrongUsage(
            describe_unknown_name("policy", name, known), what=format_parameter("policy", name)
        )
    module = build_wasm_module()
    try:
        place.write_bytes(module)
    except OSError as error:
        raise WrongUsage(
            f"cannot be written: {error.strerror}",
            what=format_parameter("out", place),
            fix="name another file",
        ) from None
    return place


def page_of(module: bytes) -> str:
    """Returns the page as HTML, with the given WebAssembly module inside."""
    connection = "session_connection.js"
    replacements = {
        MONITOR / connection: PAGE / connection,
        MONITOR / HAND_OVER_SCRIPT: TEMPLATES / HAND_OVER_SCRIPT,
    }
    scripts = [vega_bundle(), bundled(PAGE / "main.js", replacements)]
    scripts = [script.replace("</script", "<\\/script") for script in scripts]
    carried = {
        MODULE_ID: base64.b64encode(module).decode(),
        "schedlab-policies": json.dumps(build_policy_list(), ensure_ascii=False),
        "schedlab-session": bundled(MONITOR / "session" / "worker.js", {}),
        "schedlab-first": (PAGE / "first.json").read_text(),
        "schedlab-lessons": json.dumps(
            {name: read_lesson(name).json_object for name in built_in_lessons()}, ensure_ascii=False
        ),
        "schedlab-palette": json.dumps(list(workloads()), ensure_ascii=False),
    }
    page = _STYLE.sub(_style, (MONITOR / "index.html").read_text())
    parts = {
        "<head>\n": f"<head>\n{_policy(scripts)}\n"
        f'<meta name="module" content="{sources_hash()}">\n'
        f'<meta name="sources" content="{hash_of(sources())}">\n'
        f'<meta name="compiler" content="{require_compiler().description()}">\n',
        '<link rel="icon" href="icon.svg" type="image/svg+xml">': _icon_element(),
        '<script src="app.js" type="module"></script>\n': _style_element(PAGE / "page.css"),
        "</body>": "".join([*_data_elements(carried), *map(_script_element, scripts), "</body>"]),
    }
    for marker, replacement in parts.items():
        if marker not in page:
            raise BuildFailed(f"index.html has no {marker!r} any more")
        page = page.replace(marker, replacement)
    return page


def workloads() -> Iterator[dict[str, str | bool]]:
    """Yields the palette's workloads, converted to simulator text."""
    for entry in read_palette().values():
        file = workload_files.read_workload_file(entry.file)
        text = format_workload(file, SEED, TICK_NS)
        yield {
            "name": entry.name,
            "title": entry.title,
            "kind": entry.kind,
            "text": text,
            "tick_bound": text != format_workload(file, SEED, 2 * TICK_NS),
        }


def _policy(scripts: Iterable[str]) -> str:
    """Returns a content security policy that allows only these scripts, and WebAssembly."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; script-src {allowed}"
        " 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _icon_element() -> str:
    icon = base64.b64encode((MONITOR / "icon.svg").read_bytes()).decode()
    return f'<link rel="icon" href="data:image/svg+xml;base64,{icon}" type="image/svg+xml">'


def _style(link: re.Match[str]) -> str:
    """Returns a `<style>` element that replaces a link to a style sheet, with the link's attributes."""
    folder = TEMPLATES if link[2] in THEME else MONITOR
    return _style_element(folder / link[2], link[1] + link[3])


def _style_element(path: Path, conditions: str = "") -> str:
    return f"<style{conditions}>\n{path.read_text()}</style>\n"


def _script_element(text: str) -> str:
    return f"<script>{text}</script>\n"


def _data_elements(texts: dict[str, str]) -> Iterator[str]:
    """Yields HTML elements that hold the texts as data, which browsers do not execute."""
    for name, text in texts.items():
        safe = text.replace("</script", "<\\/script")
        yield f'<script type="text/plain" id="{name}">{safe}</script>\n'
