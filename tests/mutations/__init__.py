"""Recorded inputs of every kind, spoiled in any way: none gives a traceback.

:mod:`.spoiling` spoils bytes and JSON, :mod:`.kinds` has the inputs and what reads them, and
``python -m tests.mutations`` tries thousands of each. The unit tests try a few hundred.
"""
