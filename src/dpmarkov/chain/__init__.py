"""Markov chains and their analyses; this room knows nothing of privacy."""
