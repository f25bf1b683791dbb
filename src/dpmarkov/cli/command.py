"""How a command is registered: dataclasses become options, errors become messages and exit codes.

A command takes dataclasses of options, such as ``target: Target``; their fields are shown to typer
as if the command had them all as parameters. Three commands share twenty options that way, each
written once.
"""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from dpmarkov.cli.output import fail, in_options, warn
from dpmarkov.errors import DpmarkovError

__all__ = ["register"]


def register(app: typer.Typer, command: Callable[..., None]) -> None:
    """Add a command to the application.

    Parameters
    ----------
    app : typer.Typer
        The application.
    command : callable
        Its docstring is the help; what follows the word "Example" is the epilog.
    """
    text, _, example = inspect.cleandoc(command.__doc__ or "").partition("Example:")
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    help = "\n\n".join(paragraphs).strip()
    app.command(command.__name__, help=help, epilog=f"Example:{example}")(_flat(command))


def _flat(command: Callable[..., None]) -> Callable[..., None]:
    """Spread the fields of a command's dataclasses over its own signature."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    def run(**given: Any) -> None:
        with _ending_well(given["debug"], given["json"]):
            for name, kind in groups.items():
                given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            command(**given)

    parameters = [
        parameter
        for name, own in inspect.signature(command).parameters.items()
        for parameter in (
            _of_fields(groups[name]) if name in groups else [_plain(own, hints[name])]
        )
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _plain(own: inspect.Parameter, hint: Any) -> inspect.Parameter:
    return own.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)


def _of_fields(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


@contextmanager
def _ending_well(debug: bool, json: bool) -> Iterator[None]:
    """End with a message and an exit code; a traceback is shown to who asks for it."""

    def end(message: str, code: int) -> None:
        if debug:
            traceback.print_exc()
        fail(message, code, as_json=json)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            yield
    except DpmarkovError as error:
        end(in_options(str(error)), 2)
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise  # an end on purpose, or the reader of a pipe had enough: typer knows about these
    except OSError as error:
        # Nameless are the standard streams, and files in the hands of Arrow.
        end(f"{error.filename or 'output'}: {error.strerror or 'cannot be written'}", 2)
    except Exception as error:
        # Its own words may hold a value of the data, so they are not repeated.
        end(
            f"unexpected {type(error).__name__}, which is a mistake in dpmarkov or too little "
            "memory; run again with --debug to see where (a traceback may show data: do not "
            "pass it on unread)",
            1,
        )
