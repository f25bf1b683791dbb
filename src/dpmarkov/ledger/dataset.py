"""A data set of a ledger: its budget, what was charged to it, and charging it.

A charge is checked and entered in one transaction, in which nobody else writes. What remains is
found afterwards, for whoever was refused: that takes longer, and holds up no one.

What goes before a release (choosing bounds, merging states) is charged by itself, and what it found
may decide on the noise of the release. So the release names the charge that it *follows*, and
counts with no more than what is proven of it whatever was found: its claim.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpmarkov.errors import BudgetError, DpmarkovError
from dpmarkov.guarantee import Guarantee, check_share
from dpmarkov.ledger.another import calibrated, remaining
from dpmarkov.ledger.budget import Budget, Spending, fits, spent
from dpmarkov.ledger.charges import Charge, Purpose, charges_of, said_by, spending_of
from dpmarkov.ledger.entries import Entry
from dpmarkov.mechanisms.dirichlet import exact_prior
from dpmarkov.noise import Dirichlet, Geometric, Mechanism
from dpmarkov.privacy.units import bounds_for, sensitivity

if TYPE_CHECKING:
    from dpmarkov.ledger.ledger import Ledger
    from dpmarkov.privacy.units import Unit

__all__ = ["Dataset"]

_NOTHING = "Nothing was charged for it and no noise was drawn."
_STAYS = (
    "No noise was drawn for it. What was spent before, on bounds or on merging states, stays "
    "charged, and counting anew spends it anew."
)


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
        max_cells: int | None = None,
        max_per_cell: int | None = None,
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
        max_cells, max_per_cell : int, optional
            Under `user`: how users are bounded.

        Returns
        -------
        float
            To four digits, rounded down. A release of this mechanism at this epsilon and delta,
            and of this part, is accepted if nothing else is charged in between; not even a share
            for bounds or for merging, which makes it one more charge.
        """
        sensitivity(self.budget.unit, max_cells=max_cells, max_per_cell=max_per_cell)
        return remaining(
            self._spending(self.ledger.entries()),
            self.budget,
            mechanism=mechanism,
            delta=self.budget.delta if delta is None else float(delta),
            mass=None if prior is None else exact_prior(prior),
            part=self.part,
            **bounds_for(self.budget.unit, max_cells, max_per_cell),
        )

    def charge(
        self, guarantee: Guarantee, *, purpose: Purpose = "release", follows: str | None = None
    ) -> str:
        """Charge a promise, before its noise is drawn.

        Parameters
        ----------
        guarantee : Guarantee
            What will be revealed; without what has been charged for before.
        purpose : {"release", "merging", "bounds"}
            What for.
        follows : str, optional
            The charge of an earlier step that may have decided on the noise.

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
        if guarantee.spent_epsilon:
            raise DpmarkovError(
                f"spent_epsilon={guarantee.spent_epsilon:g} is charged when it is spent "
                "(charge_share), and the noise that follows by itself"
            )
        asked = replace(guarantee, after_share=follows is not None)
        new = Spending(replace(asked, conditions=()), self.part)
        with self.ledger.writing() as page:
            self._check_budget(page.entries)
            if follows is not None:
                self._check_of_this_part(page.entries, follows)
            before = self._spending(page.entries)
            accepted = fits([*before, new], self.budget)
            id_ = secrets.token_hex(16)
            if accepted:
                said = {"purpose": purpose, "part": self.part, "follows": follows}
                page.add("charge", self.name, charge=id_, **said, **said_by(asked))
        if not accepted:
            raise self._refusal(asked, before, _STAYS if asked.after_share else _NOTHING)
        return id_

    def charge_share(self, unit: Unit, epsilon: float, purpose: Purpose) -> str:
        """Charge a share of epsilon that an earlier step takes, before its noise is drawn.

        Whatever is epsilon-differentially private without a delta reveals at most what randomised
        response does, or two-sided geometric noise of scale 1/epsilon in a single cell. That is
        entered, whatever the step does.

        Parameters
        ----------
        unit : {"transition", "user"}
            What the step hides.
        epsilon : float
            The share.
        purpose : {"merging", "bounds"}
            The step.

        Returns
        -------
        str
            The charge's id.
        """
        return self.charge(_share(unit, epsilon), purpose=purpose)

    def check_room(
        self, *, epsilon: float, delta: float, mechanism: Mechanism, shares: Sequence[float]
    ) -> None:
        """Refuse a release that would not fit, before the shares that it begins with are charged.

        What the shares will find need not be known for that: what follows them counts by its claim,
        or has the same profile whatever they find.

        Parameters
        ----------
        epsilon, delta : float
            The promise of the release, shares and all.
        mechanism : {"dirichlet", "geometric", "gaussian"}
            Its noise.
        shares : sequence of float
            What bounds or merging will take of epsilon.

        Raises
        ------
        BudgetError
            If the budget has less left.
        """
        unit, one = self.budget.unit, bounds_for(self.budget.unit, 1, 1)
        check_share(unit, epsilon, sum(shares))
        left = epsilon - sum(shares)
        noise = calibrated(mechanism, unit, left, delta, None, one)
        last = Guarantee(unit, left, delta, noise, (), after_share=True, **one)
        first = [Spending(_share(unit, share), self.part) for share in shares]
        before = [*self._spending(self.ledger.entries()), *first]
        if not fits([*before, Spending(last, self.part)], self.budget):
            spent = f"the {sum(shares):g} that would go before it, on bounds or on merging states"
            raise self._refusal(last, before, f"Nothing was charged, nor was {spent}.")

    def confirm(self, charge: str, artefact: str) -> None:
        """Enter that the file of a charge is safely on disk.

        Parameters
        ----------
        charge : str
            The charge's id.
        artefact : str
            Name of the file.
        """
        with self.ledger.writing() as page:
            self._part_of(page.entries, charge)
            written = str(artefact).encode("utf-8", "backslashreplace").decode()
            page.add("confirmation", self.name, charge=charge, artefact=written)

    def check_unit(self, unit: Unit) -> None:
        """Refuse a release at another unit than the budget's."""
        if unit != self.budget.unit:
            raise DpmarkovError(
                f"the budget of {self.name!r} is of the unit {self.budget.unit!r}, and unit="
                f"{unit!r} does not add up with it; release at the budget's unit, or against "
                "another data set of the ledger"
            )

    def check_charged(self, charge: str) -> None:
        """Refuse a charge that is none of this data set, or one of another part of it."""
        self._check_of_this_part(self.ledger.entries(), charge)

    def _spending(self, entries: list[Entry]) -> list[Spending]:
        return spending_of(entries, self.name)

    def _check_budget(self, entries: list[Entry]) -> None:
        """Refuse a budget that is not that of the ledger: of a ledger made anew, or made up."""
        told = next((e for e in entries if (e.kind, e.dataset) == ("dataset", self.name)), None)
        mine = self.budget
        if told is None or (told.unit, told.epsilon, told.delta) != (
            mine.unit, mine.epsilon, mine.delta
        ):  # fmt: skip
            raise DpmarkovError(
                f"{self.ledger.name} holds no data set {self.name!r} with this budget; find it "
                f"anew with ledger.dataset({self.name!r})"
            )

    def _part_of(self, entries: list[Entry], charge: str) -> str | None:
        found = {e.charge: e.part for e in entries if (e.kind, e.dataset) == ("charge", self.name)}
        if charge not in found:
            raise DpmarkovError(f"{self.name!r} in {self.ledger.name} has no charge {charge}")
        return found[charge]

    def _check_of_this_part(self, entries: list[Entry], charge: str) -> None:
        part = self._part_of(entries, charge)
        if part != self.part:
            raise DpmarkovError(
                f"{_named(part)} of {self.name!r} was charged for what was spent on these counts "
                f"before, and now {_named(self.part)} would be; give the same part each time"
            )

    def _refusal(self, asked: Guarantee, before: list[Spending], spent: str) -> BudgetError:
        law = asked.noise
        left = remaining(
            before,
            self.budget,
            mechanism=law.mechanism,
            delta=asked.delta,
            mass=law.mass if isinstance(law, Dirichlet) else None,
            part=self.part,
            after_share=asked.after_share,
            **asked.bounds,
        )
        may = f"may have epsilon = {left:g} at most" if left else "has nothing left"
        return BudgetError(
            f"epsilon={asked.epsilon:g}, delta={asked.delta:g} is more than {self.name!r} has left "
            f"of its budget epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}: one "
            f"more release with {law.mechanism} noise at delta = {asked.delta:g} {may}. "
            f"{spent} Ask for less, or speak with whoever keeps the ledger",
            asked=asked.epsilon,
            remaining=left,
        )


def _share(unit: Unit, epsilon: float) -> Guarantee:
    one = bounds_for(unit, 1, 1)
    noise = Geometric.calibrated(unit, epsilon=epsilon, delta=0.0, **one)
    return Guarantee(unit, epsilon, 0.0, noise, (), **one)


def _named(part: str | None) -> str:
    return "the whole" if part is None else f"the part {part!r}"
