"""Queries: they answer questions that span many runs, from the tables of a store."""
