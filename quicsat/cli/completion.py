"""``./run.py completion``: prints a script with which a shell completes commands, options and names."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from quicsat.cli import commands, console
from quicsat.cli.commands import parser_of
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.config.variants import variant_named
from quicsat.model.implementation import OWN_IMAGES, Implementation, Role

SHELLS = ("bash", "zsh", "fish")
COLONS = """
# Bash ends a word at a colon, and names of variants contain one: put such words together again.
_quicsat_with_colons() {
  local word typed at line before=() words=()  # line: what the function above would otherwise leave in the shell
  for at in "${!COMP_WORDS[@]}"; do
    word=${COMP_WORDS[at]}
    if [[ ${#words[@]} -gt 0 && ( $word == : || ${words[-1]} == *: ) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    ((at == COMP_CWORD)) && before=("${words[@]}")
  done
  COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#before[@]} - 1))
  _shtab_quicsat
  typed=${before[-1]}
  if [[ $typed == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${typed%:*}:"}")
  fi
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace
  fi
}

complete -o bashdefault -F _quicsat_with_colons PROGRAM
"""
OWN_OPTIONS = "_arguments -C -s"
"""How the script for zsh declares options, first those in front of a command, which shall not hide the command's."""
GROUP = "Maintain", 8
SUMMARY = "Print a script that lets bash, zsh or fish complete commands and names."
DESCRIPTION = (
    "Print a script that lets a shell complete commands, options, and the names of implementations, variants, test "
    "cases and figures. The script contains the names that are known here. Load it when your shell starts."
)
EXAMPLES = (
    'completion bash   # in ~/.bashrc: eval "$(./run.py completion bash)"',
    'completion zsh    # in ~/.zshrc, after compinit: eval "$(./run.py completion zsh)"',
    "completion fish   # in ~/.config/fish/config.fish: ./run.py completion fish | source",
)


class Options(CommandOptions):
    """The options of the command."""

    shell: str = option(choices=SHELLS, metavar="SHELL", help=f"One of {', '.join(SHELLS)}; example: {SHELLS[0]}.")


def run(options: Options, program: Program) -> int:
    """Print the script."""
    import shtab

    command, found = Path(program.words[0]).name, names(program)
    if options.shell == "zsh":
        found = {kind: tuple(name.replace(":", "\\:") for name in words) for kind, words in found.items()}
    script = shtab.complete(whole_parser(command, found), shell=options.shell, root_prefix="quicsat")
    if options.shell == "zsh":
        script = script.replace(OWN_OPTIONS, f"{OWN_OPTIONS} -A '-*'", 1)
    elif options.shell == "bash":
        script += COLONS.replace("PROGRAM", command)
    console.show(script)
    return ExitStatus.SUCCESS


def names(program: Program) -> dict[str, tuple[str, ...]]:
    """What may follow an option or stand for an argument, by the name of its value."""
    from quicsat.analysis.metrics import METRICS
    from quicsat.cli.list import KINDS
    from quicsat.config.inventory import Inventory
    from quicsat.plan.select_test_cases import ALL_FUNCTIONAL_TESTS, ALL_MEASUREMENTS

    inventory = Inventory(program.root)
    known = inventory.implementations.values()
    cases = [*inventory.test_cases.values(), *inventory.on_request.values()]
    tests = [
        ALL_MEASUREMENTS,
        ALL_FUNCTIONAL_TESTS,
        *(name for case in cases for name in (case.name, case.abbreviation)),
    ]
    return {
        "server": of_role(known, Role.SERVER),
        "client": of_role(known, Role.CLIENT),
        "must_include": tuple(dict.fromkeys((*of_role(known, Role.SERVER), *of_role(known, Role.CLIENT)))),
        "replace": tuple(f"{each.name}=" for each in known),
        "test": tuple(tests),
        "require": tuple(name for case in cases for name in (case.name, case.abbreviation)),
        "plot": tuple(program.figures()),
        "metric": tuple(metric.name for metric in METRICS),
        "entries": (*KINDS, *tests[2:], *(each.name for each in known)),
        "names": (*(each.name for each in known), *OWN_IMAGES),
    }


def of_role(known: Iterable[Implementation], role: Role) -> tuple[str, ...]:
    """Names of implementations that can have a role, and of those of their variants that can."""
    words = list[str]()
    for each in known:
        words += [each.name] if role in each.roles else []
        variants = (variant_named(each, variant.name) for variant in each.variants)
        words += [variant.name for variant in variants if role in variant.roles]
    return tuple(words)


def whole_parser(program: str, found: Mapping[str, Sequence[str]]) -> argparse.ArgumentParser:
    """The options of all commands in one parser; its own are those of the default command."""
    whole = argparse.ArgumentParser(program, add_help=False)
    _declare(whole, commands.DEFAULT, found)
    whole.add_argument("--version", action="store_true", help="Print the version.")
    below = whole.add_subparsers()
    for name, summary in commands.SUMMARIES.items():
        _declare(below.add_parser(name, help=summary, description=summary, add_help=False), name, found)
    return whole


def _declare(parser: argparse.ArgumentParser, name: str, found: Mapping[str, Sequence[str]]) -> None:
    """Add the options of a command with what completes their values."""
    import shtab

    for action in parser_of(name)._actions:
        parser._add_action(action)
        if action.choices or action.dest in found:
            action.choices = list(map(str, action.choices or found[action.dest]))
        elif action.metavar in ("DIR", "RUN", "SITE"):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
