"""Commands on the history: they build it, and ask what spans runs."""
