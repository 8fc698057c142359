"""How commands and jobs read their arguments. Nothing heavy is imported here: `--help` is quick."""

import argparse
import difflib
import os
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from headgate.errors import InputError
from headgate.places import check_there
from headgate.rows.headers import check_headers
from headgate.rows.listing import format_of
from headgate.stores import check_address, without_file, without_slashes

GUESSES = {
    "try": "compare diff dry-run explain recommend run simulate test what-if whatif",
    "usage": "consumers limits ps show status tenants throttled top topics who",
    "why": "blame cause culprit reason throttling victim",
    "groups": "group quota quotas resource-groups resourcegroups",
    "sql": "ask query select",
    "tables": "describe ls",
    "sweep": "cache entry-cache size sizing",
    "replay": "report",
    "get": "describe show",
    "set": "add create edit put update",
    "delete": "remove rm",
    "list": "ls",
}
"""What people call a command, or an action of one, that has another name here."""
LAST_PORT = 65_535
WRONG = 2
"""Exit status for an argument that cannot be meant, as argparse has it."""
_ALIKE, _ALIKE_OPTION = 0.5, 0.6
"""`try` for `trie`, but not --help for --inpt: both have dashes."""
_PLACES = ("PATH", "OUTPUT")
"""Of arguments that are no options. Empty options are found by those who read them."""
_NO_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Of a command and all below it, or a job: what does not exist is told with the nearest that does.

    Options are spelled whole, so that a new one changes the meaning of none. An address of a store is checked here,
    whatever the argument, and has no slash at its end from here on; file:///PATH is PATH; an empty PATH or OUTPUT is
    refused. Left out are a FILE, which is on this machine, and what another parser reads.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{"allow_abbrev": False} | arguments)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Nothing is left unread: the parser of the subcommand knows best which options there are."""
        known, unread = super().parse_known_args(args, namespace)
        if unread:
            self._tell_unread(unread, takes_input=hasattr(known, "input"))
        for action in self._actions:
            given = getattr(known, action.dest, None)
            if action.metavar != "FILE" and action.nargs != argparse.REMAINDER:
                option = next(iter(action.option_strings), action.dest.upper())
                if isinstance(given, list):
                    setattr(known, action.dest, [self._place(one, option) for one in given])
                elif given is not None:
                    setattr(known, action.dest, self._place(given, option))
        return known, unread

    def _place(self, given: object, option: str) -> object:
        """In one line, as a command or a job says all that is wrong with places. Anything else is left as it is."""
        if not isinstance(given, str):
            return given
        if option in _PLACES and not given.strip():
            self._refuse(f"{option}: got {given!r}; allowed is a path or an address; correct it")
        try:
            check_address(given, option)
        except InputError as error:
            self._refuse(str(error))
        return without_slashes(without_file(given))

    def _refuse(self, why: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog.partition(' ')[0]}: {why}\n")

    def error(self, message: str) -> NoReturn:
        """End the process with the message."""
        if wrong := _NO_CHOICE.search(message):
            message += _meant(wrong[1], re.findall(r"'([^']*)'", wrong[2]), _ALIKE)
        super().error(message)

    def _tell_unread(self, unread: Sequence[str], *, takes_input: bool) -> NoReturn:
        hint = ""
        if unread[0].startswith("--"):
            options = [name for name in self._option_string_actions if name.startswith("--")]
            hint = _meant(unread[0].partition("=")[0], options, _ALIKE_OPTION)
        elif takes_input and os.path.exists(unread[0]):  # noqa: PTH110  of any length
            hint = "; give what is to be read with --input"
        self.error(f"unrecognized arguments: {' '.join(unread)}{hint}")


def _meant(wrong: str, names: Sequence[str], alike: float) -> str:
    wrong = wrong.casefold()
    guessed = (name for name in names if wrong in GUESSES.get(name, "").split())
    near = next(guessed, None) or next(iter(difflib.get_close_matches(wrong, names, 1, alike)), None)
    return f"; did you mean {near}?" if near else ""


def port(text: str) -> int:
    """An argument that is a port, 0: none. Raises argparse's error."""
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed is a number from 0, which is off, to {LAST_PORT}")
    return int(text)


def positive(text: str) -> int:
    """An argument that is an integer from 1. Raises argparse's error."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: an integer from 1")
    return int(text)


def add_metrics_port(parser: argparse.ArgumentParser) -> None:
    """Add --metrics-port of a command."""
    parser.add_argument(
        "--metrics-port", type=port, default=0, metavar="N", help="serve metrics at http://127.0.0.1:N/metrics"
    )


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add --strict."""
    parser.add_argument("--strict", action="store_true", help="warnings about conf files are mistakes")


def is_topic(options: argparse.Namespace, configured: str) -> bool:
    """Whether --input is a Kafka topic. configured: the format by headgate.toml."""
    return (options.format or configured) == "kafka"


def input_format(options: argparse.Namespace, configured: str, *, recorded: bool = True) -> str:
    """The format of --input: as --format says, else as the names of its files say, else as `configured`.

    configured: by headgate.toml. Of a Kafka topic, and of a path that is not on this machine, no names are asked.
    recorded: what is there now is all there is. Raises InputError for an input that is not there or, if recorded,
    cannot be read as this format (check_headers).
    """
    path: str = options.input
    is_here = configured != "kafka" and "://" not in path
    format_: str = options.format or (format_of(path) if is_here else None) or configured
    if not is_topic(options, configured):
        check_there(path, "--input")
        if recorded:
            check_headers(path, format_, "--input")
    return format_
