"""Markov chains and their analyses; this room knows nothing of privacy."""

from dpmarkov.chain.stationary import stationary_distribution

__all__ = ["stationary_distribution"]
