from __future__ import annotations

import pytest
from atlas_offline.words import (
    content_words,
    name_words,
    normalise,
    number_values,
    phrases,
    stem,
    unused_numbers,
    without_quotes,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  what\t is  2 ?", "what is 2 ?"),
        ("“quoted” and ‘single’", "\"quoted\" and 'single'"),
        ("２＋２", "2+2"),
        ("3² + 2", "3^2 + 2"),
        ("5 km²", "5 km²"),
        ("5 − 3", "5 - 3"),
        ("one\n\n  two", "one\ntwo"),
    ],
)
def test_normalise_unifies_what_people_type_without_changing_its_meaning(text: str, expected: str) -> None:
    """Blanks, quotes, full-width digits and minus signs become plain; a superscript stays a power."""
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("word", "other"),
    [("words", "word"), ("deleted", "delete"), ("counting", "count"), ("boxes", "box"), ("city's", "city")],
)
def test_stem_lets_forms_of_a_word_meet(word: str, other: str) -> None:
    """A word and its commonest endings have one stem."""
    assert stem(word) == stem(other)


@pytest.mark.parametrize("word", ["glass", "bus", "red"])
def test_stem_leaves_short_words_whole(word: str) -> None:
    """What only looks like an ending stays."""
    assert stem(word) == word


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_weather", ["get", "weather"]),
        ("getWeather", ["get", "weather"]),
        ("a-b.c", ["a", "b", "c"]),
        ("x2y", ["x2y"]),
    ],
)
def test_name_words_splits_every_case(name: str, expected: list[str]) -> None:
    """Snake, kebab and camel case come apart."""
    assert name_words(name) == expected


def test_content_words_keep_negations_and_question_words() -> None:
    """What turns a request around is never dropped as a stop word."""
    said = [w.text for w in content_words("How do I not delete the file, and why should I?")]
    assert said == ["how", "not", "delete", "file", "why", "should"]


def test_content_words_leave_out_what_was_taken() -> None:
    """Words inside a taken span are no longer content."""
    assert [w.text for w in content_words("weather Paris today", [(8, 13)])] == ["weather", "today"]


def test_phrases_join_neighbours() -> None:
    """Content words side by side are one phrase."""
    assert phrases("What is the square root of 144 multiplied by 5?") == ["square root", "multiplied"]


def test_quoted_text_can_be_left_out() -> None:
    """What stands in any kind of quotes is taken out and counted; an apostrophe is no quote."""
    assert without_quotes("""count 'a b' and "c's" or `d`, it's""") == ("count  and  or , it's", 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.5 and .5", [1234.5, 0.5]),
        ("1,2,3", [1.0, 2.0, 3.0]),
        ("3.11.7", [3.11, 7.0]),
        ("12/05/2024", [12.0, 5.0, 2024.0]),
        ("5km, 20°C, 2nd", [5.0, 20.0, 2.0]),
        ("1e3 2E-2", [1000.0, 0.02]),
        ("H2O and B2B", []),
        ("1,5", [1.0, 5.0]),
        ("max(5,100)", [5.0, 100.0]),
        ("max(2.5,100.25)", [2.5, 100.25]),
        ("max(1,1e3)", [1.0, 1000.0]),
        ("[5,100] and (5,100)", [5.0, 100.0, 5100.0]),
        ("f((1,200), 3,400)", [1200.0, 3.0, 400.0]),
        ("1,000) + f(5,100)", [1000.0, 5.0, 100.0]),
    ],
)
def test_number_values_reads_what_is_written(text: str, expected: list[float]) -> None:
    """Thousands, decimals, exponents and lists are told apart; digits inside a word are no number."""
    assert number_values(text) == expected


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("15% of 80", ["15 / 100 * 80"]),
        ("15% of 80", [0.15, 80]),
        ("2 million times 3", ["2000000 * 3"]),
        ("2 dozen eggs", [24]),
        ("at 3:30 pm", ["15:30"]),
        ("at 12 am", ["00:00"]),
        ("1 1/2 cups", [1.5]),
        ("3/4 cup", ["3/4"]),
        ("5 March 2024", ["2024-03-05"]),
        ("1,000 km", [1000.0]),
        ("-5 degrees", [-5]),
        ("values 1 and 2", [[1, 2]]),
        ("values 1 and 2", [{"a": 1, "b": "2"}]),
        ("max(5,100)", ["max(5, 100)"]),
        ("max(5,100)", ["max(5,100)"]),
        ("max(5,100)", [[5, 100]]),
        ("no number", [True, None]),
    ],
)
def test_a_number_is_used_in_any_usual_form(question: str, arguments: list[object]) -> None:
    """Percentages, scales, afternoon hours, fractions and dates count as used."""
    assert unused_numbers(question, arguments) == []


@pytest.mark.parametrize(
    ("question", "arguments", "left"),
    [
        ("2 + 2", ["2"], ["2"]),
        ("what is 2 + 3 in 2014", ["2 + 3"], ["2014"]),
        ("1,5 + 2", ["15 + 2"], ["1", "5"]),
        ("3/4 cup", [3], ["3", "4"]),
        ("port 80", [True], ["80"]),
        ("5 apples", [5.001], ["5"]),
        ("max(5,100)", ["max(5100)"], ["5", "100"]),
        ("the sum of 100,200", [[100, 200]], ["100200"]),
    ],
)
def test_a_number_that_no_argument_has_is_reported(question: str, arguments: list[object], left: list[str]) -> None:
    """Each use counts once, and near is not equal."""
    assert unused_numbers(question, arguments) == left


@given(st.lists(st.integers(0, 10**6), max_size=6))
def test_a_question_given_over_whole_leaves_no_number_out(numbers: list[int]) -> None:
    """Law: the question itself as argument uses all of its numbers."""
    question = " and ".join(map(str, numbers))
    assert unused_numbers(question, [question]) == []
    assert number_values(question) == [float(n) for n in numbers]


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Law: no text makes the word functions fail, and normalising twice changes nothing more."""
    once = normalise(text)
    assert normalise(once) == once
    unused_numbers(once, [once])
    phrases(once)
