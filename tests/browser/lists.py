"""The lists of columns of a page, as a person finds them."""

from __future__ import annotations


def listbox(page, side):
    return page.get_by_role("listbox", name=f"Columns {side}")


def current(page):
    """Give the column that the keys are at, which is what a screen reader reads."""
    return page.evaluate(
        """() => {
            let list = document.activeElement;
            while (list.shadowRoot) list = list.shadowRoot.activeElement;
            const id = list.getAttribute("aria-activedescendant");
            const row = list.getRootNode().getElementById(id);
            return row.querySelector(".column").textContent;
        }"""
    )


def is_uncovered(row):
    """Look whether anything is above of a row, as a heading or the search may be."""
    return row.evaluate(
        """row => {
            const { x, y, width, height } = row.getBoundingClientRect();
            return row.contains(document.elementFromPoint(x + width / 2, y + height / 2));
        }"""
    )


def option(page, side, name):
    return listbox(page, side).get_by_role("option", name=name).first
