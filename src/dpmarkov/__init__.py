"""Publish Markov chains from sensitive event data with differential privacy."""

__version__ = "0.1.0"
