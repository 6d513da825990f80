"""Tests of the questions that span runs."""
