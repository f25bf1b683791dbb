"""Markov chains and their analyses; this room knows nothing of privacy."""

from dpmarkov.chain.passage import fundamental_matrix
from dpmarkov.chain.stationary import stationary_distribution

__all__ = ["fundamental_matrix", "stationary_distribution"]
