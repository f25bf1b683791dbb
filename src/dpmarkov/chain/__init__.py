"""Markov chains and their analyses; this room knows nothing of privacy."""

from dpmarkov.chain.markov_chain import MarkovChain
from dpmarkov.chain.passage import fundamental_matrix
from dpmarkov.chain.sparse import AccuracyWarning
from dpmarkov.chain.stationary import stationary_distribution

__all__ = ["AccuracyWarning", "MarkovChain", "fundamental_matrix", "stationary_distribution"]
