"""Commands on the history: they build it, and ask it questions that span many runs.

``history`` builds and shows the store; ``trace``, ``impact``, ``stale``, ``gaps``, ``drift`` and
``patterns`` are the questions. Answers are tables for people, and with ``--json`` one object a
line. The age of the store goes to stderr, with notes and errors.

The exit codes are those of all commands: 0 if the question is answered, with any answer; 1 if it is
not, or if ``--strict`` is given and the answer is not empty; 2 if there is no store, or the store
has nothing of that name.
"""
