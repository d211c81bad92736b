"""The cases of `Benchmarks/abuse.py`, and what they share."""
