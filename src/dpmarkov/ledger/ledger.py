"""The ledger: what has been spent on which data, kept so that it cannot be overspent.

A release against a data set of a ledger goes

    charge (committed to disk) -> draw noise -> write the file (synced) -> confirm

and whatever happens in between, the charge is there. One that is never confirmed counts like any
other: its noise may have been drawn, and seen. The other order would leave a moment in which a
published file is on disk and in no book.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import dpmarkov
from dpmarkov.errors import DpmarkovError
from dpmarkov.ledger.budget import Budget
from dpmarkov.ledger.database import Database
from dpmarkov.ledger.dataset import Dataset
from dpmarkov.ledger.entries import Entry, check_chain, check_head, head_of, linked
from dpmarkov.ledger.export import export
from dpmarkov.ledger.schema import add_entry, bring_up_to_date, check_version, read_entries

if TYPE_CHECKING:
    import sqlalchemy as sa

    from dpmarkov.privacy.units import Unit

__all__ = ["Ledger"]


class Ledger:
    """A ledger of data sets, their budgets and what was charged to them.

    Parameters
    ----------
    url : str or path
        An SQLite file (a path or ``sqlite:///path``), or ``postgresql://user@host/database`` (extra
        `postgres`). A password is better kept in ``PGPASSWORD`` or ``~/.pgpass``.

    Raises
    ------
    DpmarkovError
        If there is no ledger, or one of another version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import dpmarkov as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> ledger = Ledger.create(folder / "ledger.db")
    >>> trips = ledger.add_dataset("trips", unit="transition", epsilon=3, delta=1e-5)
    >>> space = dpm.StateSpace(["sun", "rain"])
    >>> counts = dpm.TransitionCounts.from_dense([[9000, 1000], [3000, 2000]], space)
    >>> out = dpm.release(counts, epsilon=1, delta=1e-6, unit="transition", ledger=trips)
    >>> out.save(folder / "weather.json")
    >>> [(charge.id == out.charge, charge.artefacts) for charge in trips.charges()]
    [(True, ('weather.json',))]
    """

    def __init__(self, url: str | PathLike[str]) -> None:
        self._database = Database(url)
        with self._database.reading() as connection:
            check_version(connection, self.name)

    @classmethod
    def create(cls, url: str | PathLike[str]) -> Ledger:
        """Make a ledger, or bring an older one up to date; one that is leave as it is.

        Parameters
        ----------
        url : str or path
            As for `Ledger`.

        Returns
        -------
        Ledger
        """
        database = Database(url, may_create=True)
        with database.writing() as connection:
            bring_up_to_date(
                connection, database.name, made_at=_now(), made_with=dpmarkov.__version__
            )
        return cls(url)

    @property
    def name(self) -> str:
        """Where it lies, without a password."""
        return self._database.name

    def __repr__(self) -> str:
        return f"Ledger({self.name!r})"

    def add_dataset(self, name: str, *, unit: Unit, epsilon: float, delta: float) -> Dataset:
        """Add a data set and its budget, which cannot be changed afterwards.

        Parameters
        ----------
        name : str
            What it is called; public.
        unit : {"destination", "transition", "user"}
            What its releases hide.
        epsilon, delta : float
            How much all of them together may reveal.

        Returns
        -------
        Dataset
        """
        budget = Budget(unit, epsilon, delta)
        _check_name("a data set", name)
        with self.writing() as page:
            if any(entry.kind == "dataset" and entry.dataset == name for entry in page.entries):
                raise DpmarkovError(
                    f"there is a data set {name!r} in {self.name} already; its budget stays as it "
                    "is, and another needs another name"
                )
            page.add("dataset", name, unit=unit, epsilon=budget.epsilon, delta=budget.delta)
        return Dataset(self, name, budget)

    def datasets(self) -> tuple[Dataset, ...]:
        """Give all data sets."""
        return tuple(
            Dataset(self, entry.dataset, _budget(entry))
            for entry in self.entries()
            if entry.kind == "dataset"
        )

    def dataset(self, name: str, *, part: str | None = None) -> Dataset:
        """Find a data set.

        Parameters
        ----------
        name : str
            Its name.
        part : str, optional
            A part of the data (a month, say) that charges shall touch alone. By this the curator
            declares that nothing which the unit hides has data in two parts: under `transition`
            months are such parts; under `user` they are not, if the same people return.

        Returns
        -------
        Dataset
        """
        if part is not None:
            _check_name("a part", part)
        # Should someone have smuggled in a second of that name, the first budget stands.
        found = {dataset.name: dataset for dataset in reversed(self.datasets())}
        if name not in found:
            near = get_close_matches(name, found) or list(found)[:5]
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has none yet"
            raise DpmarkovError(f"there is no data set {name!r} in {self.name}; {hint}")
        return replace(found[name], part=part)

    def entries(self) -> list[Entry]:
        """Read all entries, as they are."""
        with self._database.reading() as connection:
            check_version(connection, self.name)
            return read_entries(connection)

    def verify(self, head: str | None = None) -> str:
        """Check the chain of hashes from the first entry to the last.

        Parameters
        ----------
        head : str, optional
            What this returned earlier: the chain must go on from there.

        Returns
        -------
        str
            The head, to be noted down: a number of entries and a hash.

        Raises
        ------
        DpmarkovError
            If an entry was altered, removed, moved or put in between; it is named.
        """
        entries = self.entries()
        check_chain(entries)
        if head is not None:
            check_head(entries, head)
        return head_of(entries)

    def export(self, path: str | PathLike[str], *, overwrite: bool = False) -> int:
        """Write all entries to a file, all of it or nothing.

        Parameters
        ----------
        path : path
            Ends in ``.csv`` or ``.json``.
        overwrite : bool
            Whether a file of that name may be replaced.

        Returns
        -------
        int
            How many entries there are.
        """
        entries = self.entries()
        export(entries, path, overwrite=overwrite)
        return len(entries)

    @contextmanager
    def writing(self) -> Iterator[Page]:
        """Read the ledger as its only writer; what is added is on disk when this has ended.

        Yields
        ------
        Page
            What is there, and a way to add to it.
        """
        with self._database.writing() as connection:
            check_version(connection, self.name)
            entries = read_entries(connection)
            check_chain(entries)
            yield Page(connection, entries)


@dataclass(frozen=True)
class Page:
    """The ledger as its only writer sees it."""

    connection: sa.Connection
    entries: list[Entry]

    def add(
        self, kind: Literal["dataset", "charge", "confirmation"], dataset: str, **said: Any
    ) -> None:
        entry = Entry(
            position=0,
            kind=kind,
            dataset=dataset,
            made_at=_now(),
            made_by=_user(),
            made_with=dpmarkov.__version__,
            **said,
        )
        add_entry(self.connection, linked(entry, self.entries))


def _check_name(what: str, name: object) -> None:
    if not (isinstance(name, str) and name and name.isprintable() and name == name.strip()):
        raise DpmarkovError(f"{what} needs a name of printable characters, not {name!r}")


def _budget(entry: Entry) -> Budget:
    return Budget(entry.unit, entry.epsilon, entry.delta)  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without a user of this number
        return "unknown"
