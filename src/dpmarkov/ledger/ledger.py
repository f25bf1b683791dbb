"""The ledger: what has been spent on which data, kept so that it cannot be overspent.

A release against a data set of a ledger goes

    charge (committed to disk) -> draw noise -> write the file (synced) -> confirm

and whatever happens in between, the charge is there. One that is never confirmed counts like any
other: its noise may have been drawn, and seen. The other order would leave a moment in which a
published file is on disk and in no book.
"""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import dpmarkov
from dpmarkov.errors import BudgetError, DpmarkovError
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger.another import remaining
from dpmarkov.ledger.budget import Budget, Spending, fits, spent
from dpmarkov.ledger.charges import Charge, Purpose, charges_of, said_by, spending_of
from dpmarkov.ledger.database import Database
from dpmarkov.ledger.entries import Entry, check_chain, check_head, head_of, linked
from dpmarkov.ledger.export import export
from dpmarkov.ledger.schema import add_entry, bring_up_to_date, check_version, read_entries
from dpmarkov.noise import Dirichlet, Mechanism

if TYPE_CHECKING:
    import sqlalchemy as sa

    from dpmarkov.privacy.profiles import Unit

__all__ = ["Dataset", "Ledger"]


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
        unit : {"destination", "transition"}
            What its releases hide.
        epsilon, delta : float
            How much all of them together may reveal.

        Returns
        -------
        Dataset
        """
        budget = Budget(unit, epsilon, delta)
        if not name or not name.isprintable() or name != name.strip():
            raise DpmarkovError(f"a data set needs a name of printable characters, not {name!r}")
        with self._writing() as page:
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
        found = {dataset.name: dataset for dataset in self.datasets()}
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
    def _writing(self) -> Iterator[_Page]:
        """Read the ledger as its only writer; what is added is on disk when this has ended."""
        with self._database.writing() as connection:
            check_version(connection, self.name)
            entries = read_entries(connection)
            check_chain(entries)
            yield _Page(connection, entries)


@dataclass(frozen=True)
class Dataset:
    """A data set of a ledger, to be given to `dpmarkov.release`.

    Parameters
    ----------
    ledger : Ledger
        Where it is.
    name : str
        What it is called.
    budget : Budget
        What all its releases together may reveal.
    part : str, optional
        The part of the data that charges touch.
    """

    ledger: Ledger
    name: str
    budget: Budget
    part: str | None = None

    def charges(self) -> tuple[Charge, ...]:
        """Give all its charges, of whichever part."""
        return charges_of(self.ledger.entries(), self.name)

    def spent(self) -> float:
        """Give the epsilon of all its charges together, at the delta of its budget."""
        return spent(self._spending(self.ledger.entries()), self.budget)

    def remaining(
        self,
        *,
        mechanism: Mechanism = "dirichlet",
        delta: float | None = None,
        prior: float | None = None,
    ) -> float:
        """Give the largest epsilon that one more release may have.

        Parameters
        ----------
        mechanism : {"dirichlet", "geometric", "gaussian"}
            Its noise.
        delta : float, optional
            The delta that it is calibrated to; without, that of the whole budget.
        prior : float, optional
            For the Dirichlet mechanism: its pseudo-counts; without, those that ``prior="auto"``
            chooses where it knows no total.

        Returns
        -------
        float
            To four digits, rounded down. A release of this mechanism at this epsilon and delta,
            and of this part, is accepted if nothing else is charged in between.
        """
        return remaining(
            self._spending(self.ledger.entries()),
            self.budget,
            mechanism=mechanism,
            delta=self.budget.delta if delta is None else float(delta),
            mass=prior,
            part=self.part,
        )

    def charge(self, guarantee: Guarantee, *, purpose: Purpose = "release") -> str:
        """Charge a promise, before its noise is drawn.

        Parameters
        ----------
        guarantee : Guarantee
            What will be revealed; without what merging states has been charged for.
        purpose : {"release", "merging"}
            What for.

        Returns
        -------
        str
            The charge's id. It is on disk when this returns, and counts from now on.

        Raises
        ------
        BudgetError
            If the budget has less left.
        DpmarkovError
            If the unit is another, or the ledger is damaged or cannot be written.
        """
        self.check_unit(guarantee.unit)
        new = Spending(replace(guarantee, conditions=()), self.part)
        with self.ledger._writing() as page:
            before = self._spending(page.entries)
            accepted = fits([*before, new], self.budget)
            id_ = secrets.token_hex(16)
            if accepted:
                said = said_by(guarantee)
                page.add("charge", self.name, charge=id_, purpose=purpose, part=self.part, **said)
        if not accepted:
            raise self._refusal(guarantee, before)
        return id_

    def confirm(self, charge: str, artefact: str) -> None:
        """Enter that the file of a charge is safely on disk.

        Parameters
        ----------
        charge : str
            The charge's id.
        artefact : str
            Name of the file.
        """
        with self.ledger._writing() as page:
            if charge not in _charged(page.entries, self.name):
                raise self._unknown(charge)
            page.add("confirmation", self.name, charge=charge, artefact=artefact)

    def check_unit(self, unit: Unit) -> None:
        """Refuse a release at another unit than the budget's."""
        if unit != self.budget.unit:
            raise DpmarkovError(
                f"the budget of {self.name!r} is of the unit {self.budget.unit!r}, and unit="
                f"{unit!r} does not add up with it; release at the budget's unit, or against "
                "another data set of the ledger"
            )

    def check_charged(self, charge: str) -> None:
        """Refuse a charge that is none of this data set."""
        if charge not in _charged(self.ledger.entries(), self.name):
            raise self._unknown(charge)

    def _spending(self, entries: list[Entry]) -> list[Spending]:
        return spending_of(entries, self.name)

    def _unknown(self, charge: str) -> DpmarkovError:
        return DpmarkovError(f"{self.name!r} in {self.ledger.name} has no charge {charge}")

    def _refusal(self, asked: Guarantee, before: list[Spending]) -> BudgetError:
        law = asked.noise
        left = remaining(
            before,
            self.budget,
            mechanism=law.mechanism,
            delta=asked.delta,
            mass=law.mass if isinstance(law, Dirichlet) else None,
            part=self.part,
        )
        may = f"may have epsilon = {left:g} at most" if left else "has nothing left"
        return BudgetError(
            f"epsilon={asked.epsilon:g}, delta={asked.delta:g} is more than {self.name!r} has left "
            f"of its budget epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}: one "
            f"more release with {law.mechanism} noise at delta = {asked.delta:g} {may}. Nothing "
            "was charged and no noise was drawn. Ask for less, or speak with whoever keeps the "
            "ledger",
            asked=asked.epsilon,
            remaining=left,
        )


@dataclass(frozen=True)
class _Page:
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


def _budget(entry: Entry) -> Budget:
    return Budget(entry.unit, entry.epsilon, entry.delta)  # type: ignore[arg-type]


def _charged(entries: list[Entry], dataset: str) -> set[str | None]:
    return {e.charge for e in entries if e.kind == "charge" and e.dataset == dataset}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without a user of this number
        return "unknown"
