# SPDX-License-Identifier: MIT
"""`./schedlab new-policy`: writes a small, complete policy and its test, ready to run."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from schedlab.base.toolchain.policies import DEFAULT_POLICY
from schedlab.errors import WrongUsage
from schedlab.paths import ROOT

TEMPLATES = Path(__file__).with_name("templates")
NAME_MAX = 24
SOURCE_TEXT_MAX = 72
LINE_LENGTH = 100

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_PLACEHOLDER = re.compile(r"@(name|prefix|PREFIX|source)@")
_TEMPLATE_IDENTIFIER = re.compile(r"\w*@(?:prefix|PREFIX)@\w*")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")


def create_policy(root: Path, name: str, source: str) -> tuple[Path, Path]:
    """Writes both files into the checkout, or neither, and returns their paths."""
    check_name(name)
    check_source(source)
    check_name_is_free(root, name)
    check_identifiers(root, name)
    policy = root / "policies" / f"{name}.c"
    test = root / "tests" / "host" / f"policy_{name}_test.c"
    write_new_files(
        {
            policy: render_template("policy.c", name, source),
            test: render_template("policy_test.c", name, source),
        }
    )
    return policy, test


def check_name(name: str) -> None:
    """Raises WrongUsage unless the name can be a file name, an argument and,
    with _ for -, part of a C name.
    """
    if not _NAME.fullmatch(name):
        raise WrongUsage(
            f"'{name}': not a policy name; use a-z, 0-9 and -, beginning with a letter"
        )
    if len(name) > NAME_MAX:
        raise WrongUsage(
            f"'{name}': {len(name)} characters are too many; a policy's name has at most {NAME_MAX}"
        )


def check_source(source: str) -> None:
    """Raises WrongUsage for a source that does not fit into a one-line C string."""
    if not source.strip() or not source.isprintable():
        raise WrongUsage(
            "--source: expected one line with the algorithm's author and year, such "
            "as 'Kleinrock 1964'"
        )
    if len(source) > SOURCE_TEXT_MAX:
        raise WrongUsage(
            f"--source: {len(source)} characters are too many; use at most {SOURCE_TEXT_MAX}"
        )


def check_name_is_free(root: Path, name: str) -> None:
    """Raises WrongUsage if a policy or test has this name. In C, - and _ are the same."""
    policies = root / "policies"
    sources = (*policies.glob("*.c"), *policies.glob("studies/*.c"))
    taken = {path.stem: path for path in sources}
    for path in (root / "tests" / "host").glob("policy_*_test.c"):
        taken.setdefault(path.stem.removeprefix("policy_").removesuffix("_test"), path)
    for other, path in sorted(taken.items()):
        if other.replace("-", "_") == name.replace("-", "_"):
            raise WrongUsage(
                f"'{name}': the name is taken by {path.relative_to(root)}; choose another name"
            )


def check_identifiers(root: Path, name: str) -> None:
    """Raises WrongUsage if a header of policies or tests already defines one of the new C names."""
    identifiers = set(template_identifiers(name))
    for folder in ("policies", "policies/support", "tests/host"):
        for header in sorted((root / folder).glob("*.h")):
            clash = sorted(identifiers & set(_IDENTIFIER.findall(header.read_text())))
            if clash:
                raise WrongUsage(
                    f"'{name}': its C name {clash[0]} is already used in "
                    f"{header.relative_to(root)}; choose another name"
                )


def template_identifiers(name: str) -> Iterator[str]:
    """Yields all names that the two files define or that a linker sees."""
    for template in ("policy.c", "policy_test.c"):
        for match in _TEMPLATE_IDENTIFIER.findall((TEMPLATES / template).read_text()):
            yield fill_placeholders(match, name, "")


def render_template(template: str, name: str, source: str) -> str:
    """Returns the file's text, formatted as clang-format would."""
    text = fill_placeholders((TEMPLATES / template).read_text(), name, source)
    return "".join(wrap_line(line) + "\n" for line in text.splitlines())


def fill_placeholders(text: str, name: str, source: str) -> str:
    """Returns the text with the placeholders replaced."""
    prefix = name.replace("-", "_")
    values = {
        "name": name,
        "prefix": prefix,
        "PREFIX": prefix.upper(),
        "source": source.replace("\\", "\\\\").replace('"', '\\"'),
    }
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def wrap_line(line: str) -> str:
    """Breaks a line that a long name made too long: after a comma, or before an initial value."""
    if len(line) <= LINE_LENGTH:
        return line
    if "{" not in line and ", " in line:
        break_at = line.rindex(", ", 0, LINE_LENGTH) + 1
        return f"{line[:break_at]}\n{' ' * (line.index('(') + 1)}{line[break_at + 1 :]}"
    indent = len(line) - len(line.lstrip())
    before, _, after = line.partition(" = ")
    return f"{before} =\n{' ' * (indent + 4)}{after}"


def write_new_files(files: dict[Path, str]) -> None:
    """Creates all these files or none of them. None may exist yet."""
    created: list[Path] = []
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                created.append(path)
                file.write(text)
    except BaseException as error:
        for path in created:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise WrongUsage(
                f"cannot be written: {error.strerror}; nothing was created",
                what=str(error.filename or "the files"),
                fix="make the checkout writable, or free some space",
            ) from None
        raise


def next_steps_message(name: str, policy: Path, test: Path) -> str:
    """Returns the message after both files are written."""
    steps = [
        (
            f"./schedlab run --policy {name},{DEFAULT_POLICY} --cpus 1,2",
            "compare it with another policy",
        ),
        (
            f"./schedlab test tests/host/test_host_programs.py -k policy_{name}_test",
            "run its test on the model",
        ),
        (f"./schedlab check {name}", "find mistakes, with their lines; a run does this, too"),
        ("./schedlab test tests/policies", "check the rules for all policies"),
    ]
    lines = [f"Wrote {policy} and {test}.", "", "It already runs. Try it, then change it:", ""]
    for command, why in steps:
        lines += [f"    {command}", f"        {why}"]
    return "\n".join([*lines, "", "Next: docs/writing-a-policy.md."])


@click.command("new-policy")
@click.argument("name")
@click.option(
    "--source",
    default="not published",
    show_default=True,
    metavar="'AUTHOR YEAR'",
    help="Author and year of the algorithm.",
)
def new_policy(name: str, source: str) -> None:
    """Create a new policy and its test.

    NAME has a-z, 0-9 and -. The policy is complete: a first-in, first-out queue with a time slice, ready to run.
    docs/writing-a-policy.md continues from it.
    """
    policy, test = create_policy(ROOT, name, source)
    click.echo(next_steps_message(name, policy.relative_to(ROOT), test.relative_to(ROOT)))
