"""The lists of columns of a page, as a person finds them."""

from __future__ import annotations


def listbox(page, side):
    return page.get_by_role("listbox", name=f"Columns {side}")


def current(page):
    """Give the column that the keys are at, which is what a screen reader reads."""
    return page.evaluate(
        """() => {
            const list = document.activeElement;
            const row = document.getElementById(list.getAttribute("aria-activedescendant"));
            return row.querySelector(".column").textContent;
        }"""
    )


def is_below_its_heading(row):
    return row.evaluate(
        """row => {
            const heading = row.parentElement.firstElementChild.getBoundingClientRect();
            return row.getBoundingClientRect().top >= heading.bottom - 1;
        }"""
    )


def option(page, side, name):
    return listbox(page, side).get_by_role("option", name=name).first
