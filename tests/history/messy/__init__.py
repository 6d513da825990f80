"""Messy worlds, an oracle written from the rules of the history alone, and their comparison.

==================  ===============================================================================
:mod:`.worlds`      random worlds with all that goes wrong in lakes
:mod:`.oracle`      the right answers of a world: slow, and without the engine
:mod:`.comparing`   the differences between the engine's answers and the oracle's
:mod:`.shrinking`   the least world in which a difference remains
==================  ===============================================================================
"""
