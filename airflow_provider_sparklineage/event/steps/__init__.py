"""Functions that change an event before it is stored or sent: its texts, its names, its size.

The functions are in :mod:`.texts`, :mod:`.rename` and :mod:`.size`. :mod:`..pipeline` calls them,
and says in which order.
"""
