"""The pictures of ``docs/``, made from real runs: ``make pictures``.

One run of the demo is what all of them show. What would differ in the next run or on another
machine is made equal: the lake is ``/lake``, and the clock stands.
"""
