"""Globs as Hadoop reads them: of values and names, and of folders."""

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.globs import compiled, compiled_folders, is_glob

BOTH = [compiled, compiled_folders]


@pytest.mark.parametrize("translate", BOTH)
@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        pytest.param("2024-05-*", "2024-05-06", True, id="star"),
        pytest.param("2024-05-*", "2024-05-", True, id="star of nothing"),
        pytest.param("2024-05-0?", "2024-05-0", False, id="one character is missing"),
        pytest.param("2024-05-0[6-8]", "2024-05-07", True, id="set"),
        pytest.param("2024-05-0[!6-8]", "2024-05-07", False, id="not of a set"),
        pytest.param("2024-05-0[^6-8]", "2024-05-09", True, id="not of a set, as regexes have it"),
        pytest.param("[a^]", "^", True, id="sign of regexes in a set"),
        pytest.param("[]a]", "]", True, id="bracket in a set"),
        pytest.param("[a", "[a", True, id="open bracket"),
        pytest.param("2024-05-{06,07}", "2024-05-07", True, id="braces"),
        pytest.param("{a,{b,c}}x", "cx", True, id="braces in braces"),
        pytest.param("a,b", "a,b", True, id="comma outside of braces"),
        pytest.param("{a,b", "{a,b", True, id="open brace"),
        pytest.param("a}*", "a}*", True, id="closed brace"),
        pytest.param("[z-a]", "[z-a]", True, id="backward range"),
        pytest.param("a\\*", "a*", True, id="escaped star"),
        pytest.param("a\\*", "ab", False, id="escaped star is no star"),
        pytest.param("a.b", "axb", False, id="a dot is a dot"),
        pytest.param("a*", "a\nb", True, id="new line"),
        pytest.param("Zür*", "Zürich", True, id="unicode"),
    ],
)
def test_a_glob_matches_as_in_hadoop(translate, glob, text, matches):
    assert (translate(glob).fullmatch(text) is not None) is matches


def _matches(glob, text):
    """Whether a glob of stars, question marks and letters is for a text, one sign after another."""
    if not glob:
        return not text
    if glob[0] == "*":
        return _matches(glob[1:], text) or (bool(text) and _matches(glob, text[1:]))
    return bool(text) and glob[0] in ("?", text[0]) and _matches(glob[1:], text[1:])


@given(st.text("ab*?", max_size=9), st.text("ab", max_size=9))
@example("*aba*b", "ababb")
@example("*ab?*?b*", "aabbab")
def test_several_stars_match_as_one_sign_after_another_would(glob, text):
    assert (compiled(glob).fullmatch(text) is not None) is _matches(glob, text)


@pytest.mark.parametrize("glob", ["*a" * 20 + "*b", "*" * 100 + "b", "*[a-z]?" * 20 + "*!"])
def test_many_stars_are_not_tried_in_all_ways(glob):
    # In a process that can be cut off: the regex is not to be interrupted from within.
    code = f"""if True:
        from airflow_provider_sparklineage.model.globs import compiled
        assert compiled({glob!r}).fullmatch("a" * 250) is None"""
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0


@pytest.mark.parametrize(
    ("glob", "text", "anywhere", "in_folder"),
    [
        pytest.param("/lake/*", "/lake/a/b", True, False, id="star"),
        pytest.param("/lake?a", "/lake/a", True, False, id="question mark"),
        pytest.param("/lake[!x]a", "/lake/a", True, False, id="not of a set"),
        pytest.param("/lake/**", "/lake/a/b", True, True, id="any depth"),
        pytest.param("/lake/**/b", "/lake/b", True, True, id="no folder"),
        pytest.param("/lake/**/b", "/lake/x/ab", False, False, id="full folders"),
        pytest.param("/{lake,sea}/t", "/sea/t", True, True, id="braces"),
    ],
)
def test_only_of_folders_a_star_stays_in_one(glob, text, anywhere, in_folder):
    assert (compiled(glob).fullmatch(text) is not None) is anywhere
    assert (compiled_folders(glob).fullmatch(text) is not None) is in_folder


@pytest.mark.parametrize(
    ("glob", "path", "found"),
    [
        pytest.param("/lake/*", "/lake/orders/dt=1", "/lake/orders", id="full folders"),
        pytest.param("/lake/o", "/lake/orders", None, id="half a folder"),
        pytest.param("/{lake,sea}", "/sea/orders", "/sea", id="braces"),
    ],
)
def test_a_glob_of_folders_finds_those_that_a_path_begins_with(glob, path, found):
    match = compiled_folders(glob).match(path)
    assert (match[0] if match else None) == found


@pytest.mark.parametrize("text", ["*", "a?", "[a]", "{a,b}", "a\\b"])
def test_what_spark_takes_for_a_glob_is_one(text):
    assert is_glob(text)


@given(st.text().filter(lambda text: not is_glob(text)))
def test_what_is_no_glob_matches_itself_alone(text):
    for translate in BOTH:
        assert translate(text).fullmatch(text)
        assert not translate(text).fullmatch(f"{text}x")


@given(st.text("ab*?[]{}!^,-\\/", max_size=12))
@example("[?--]")
@example("[+--]")
def test_every_text_is_a_glob_or_itself(text):
    for translate in BOTH:
        translate(text)


# More than any limit of recursion that another library may have set.
@pytest.mark.parametrize("glob", ["{" * 1000, "{a," * 1000, "{" * 20_000 + "}" * 20_000])
def test_a_glob_with_very_many_braces_matches_itself_alone(glob):
    for translate in BOTH:
        assert translate(glob).fullmatch(glob)
        assert not translate(glob).fullmatch("a")
