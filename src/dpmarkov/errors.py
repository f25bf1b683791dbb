"""One family of errors: each names the value, the limit and the way out.

Nothing sensitive enters a message: a message may be pasted into a ticket.
"""

__all__ = ["BudgetError", "DpmarkovError", "InfeasibleError"]


class DpmarkovError(ValueError):
    """Base of every error that dpmarkov raises on purpose."""


class InfeasibleError(DpmarkovError):
    """No rate reaches the wanted (epsilon, delta) at the mass there is.

    Parameters
    ----------
    message : str
        What was asked and the ways out.
    mass : float
        The mass there is.
    minimum_mass : float
        The mass that the target needs at least.
    """

    def __init__(self, message: str, *, mass: float, minimum_mass: float) -> None:
        super().__init__(message)
        self.mass = mass
        self.minimum_mass = minimum_mass


class BudgetError(DpmarkovError):
    """A release asks for more than its data set's budget has left; nothing was charged or drawn.

    Parameters
    ----------
    message : str
        What was asked, what remains and the ways out.
    asked : float
        The epsilon that was asked for.
    remaining : float
        The epsilon that such a release might have.
    """

    def __init__(self, message: str, *, asked: float, remaining: float) -> None:
        super().__init__(message)
        self.asked = asked
        self.remaining = remaining
