"""The command line: ``dpmarkov demo | plan | release | show | simulate | compare | ledger``.

Every command is a few lines over the API. What they share:

* `options`: what several commands take, as dataclasses whose fields become options;
* `declared`: the public states and support from options; `inputs`: events, and all the rest;
* `command`: how a command is registered, and how errors end it: 0 ok, 2 for what the user can
  mend (a wrong option, a missing file, an infeasible target), 1 for what is our mistake, 130 for
  an interruption (Ctrl-C);
* `output`: text and JSON on standard output, messages on standard error, rich on a terminal only.

Nothing heavy is imported before a command runs, so that ``--help`` and completion are quick.
"""

import os

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # Chains are eliminated in many small products, where threads of OpenBLAS wait for each other:
    # on two busy cores a chain of 600 states takes 0.4 s with two of them and 0.005 s with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from dpmarkov.cli.app import main as run

        run()
    except KeyboardInterrupt:  # before typer is there to do the same
        raise SystemExit(130) from None
