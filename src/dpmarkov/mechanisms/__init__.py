"""The mechanisms: noise that turns sensitive counts into publishable ones."""

from dpmarkov.mechanisms import dirichlet, sampling

__all__ = ["dirichlet", "sampling"]
