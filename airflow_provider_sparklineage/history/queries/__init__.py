"""Queries: questions that span runs, asked of the tables of a store."""
