"""The command line: ``dpmarkov demo | plan | release | show | simulate | compare | ledger``.

Every command is a few lines over the API. What they share:

* `options`: what several commands take, as dataclasses whose fields become options;
* `declared`: the public states and support from options; `inputs`: events, and all the rest;
* `command`: how a command is registered, and how errors end it: 0 ok, 2 for what the user can
  mend (a wrong option, a missing file, an infeasible target), 1 for what is our mistake;
* `output`: text and JSON on standard output, messages on standard error, rich on a terminal only.

Nothing heavy is imported before a command runs, so that ``--help`` and completion are quick.
"""

from dpmarkov.cli.app import main

__all__ = ["main"]
