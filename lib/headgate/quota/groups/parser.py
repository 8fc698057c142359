"""Arguments of `headgate groups`, which need no table to be understood."""

import argparse

RATE_OPTIONS = {
    "publishRateInMsgs": ("msg-publish-rate", "mp", "messages published a second"),
    "publishRateInBytes": ("byte-publish-rate", "bp", "bytes published a second"),
    "dispatchRateInMsgs": ("msg-dispatch-rate", "md", "messages dispatched a second"),
    "dispatchRateInBytes": ("byte-dispatch-rate", "bd", "bytes dispatched a second"),
}
"""Options by the field that they set: those of pulsar-admin resourcegroups."""
_MEANING = "0 blocks, -1 is not limited"
_RESOURCE = "a tenant, tenant/namespace, or topic (tenant/namespace/name or with its scheme)"


def add_groups_actions(parser: argparse.ArgumentParser) -> None:
    """Add what follows `headgate groups`."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    _listing(actions.add_parser("list", help="all groups, their rates and what they are attached to"))
    get = actions.add_parser("get", help="one group")
    _listing(get)
    get.add_argument("name", metavar="GROUP")

    settings = actions.add_parser("set", help="create a group or change its rates; what is not given stays")
    _tables(settings)
    settings.add_argument("name", metavar="GROUP")
    for field, (option, short, words) in RATE_OPTIONS.items():
        settings.add_argument(
            f"-{short}",
            f"--{option}",
            dest=field,
            metavar="N",
            type=_rate,
            help=f"{words}; {_MEANING}",
        )
    unset = actions.add_parser("unset", help="limit a group no longer in these rates")
    _tables(unset)
    unset.add_argument("name", metavar="GROUP")
    for field, (option, short, words) in RATE_OPTIONS.items():
        unset.add_argument(f"-{short}", f"--{option}", dest=field, action="store_const", const=-1, help=words)

    delete = actions.add_parser("delete", help="delete a group that nothing is attached to")
    _tables(delete)
    delete.add_argument("name", metavar="GROUP")
    attach = actions.add_parser("attach", help="attach a group in place of any other")
    _tables(attach)
    attach.add_argument("name", metavar="GROUP")
    attach.add_argument("resource", metavar="RESOURCE", help=_RESOURCE)
    attach.add_argument("--unseen", action="store_true", help="also where no traffic was seen yet")
    detach = actions.add_parser("detach", help="attach nothing any more")
    _tables(detach)
    detach.add_argument("resource", metavar="RESOURCE", help=_RESOURCE)


def _rate(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: a whole number, {_MEANING}") from None


def _tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("output", metavar="OUTPUT", help="the job's --output")
    parser.add_argument("--group-table", metavar="LOCATION", help="resourceGroupGroupTable, if the job has it")
    parser.add_argument("--attachment-table", metavar="LOCATION", help="resourceGroupAttachmentTable, likewise")


def _listing(parser: argparse.ArgumentParser) -> None:
    _tables(parser)
    parser.add_argument("--json", action="store_true", help="JSON; null is not limited")
