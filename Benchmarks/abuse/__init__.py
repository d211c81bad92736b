"""The cases of `Benchmarks/abuse.py`, and the code that they share."""
