from __future__ import annotations

import pytest
from atlas_offline.phrasing import forms, unpunctuated


def test_forms_go_from_the_question_as_it_is_to_its_core() -> None:
    """The first form is the question itself, the last its barest."""
    assert list(forms("Hey, could you tell me 2 + 2 please?")) == [
        "Hey, could you tell me 2 + 2 please?",
        "Hey, could you tell me 2 + 2 please",
        "could you tell me 2 + 2",
        "2 + 2",
    ]


@pytest.mark.parametrize(
    ("question", "barest"),
    [
        ("tell me what 2 + 2 is", "what is 2 + 2"),
        ("I'd like to know 2 + 2.", "2 + 2"),
        ("Good morning, Atlas! Please add 2 and 3, thanks", "add 2 and 3"),
        ("2 + 2", "2 + 2"),
    ],
)
def test_the_last_form_is_the_barest(question: str, barest: str) -> None:
    """Greetings, requests and thanks go; an indirect question becomes a direct one."""
    assert list(forms(question))[-1] == barest


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("2 + 2?", "2 + 2"),
        ("10 - 3!?", "10 - 3!"),
        ("(2 + 1) !.", "(2 + 1) !"),
        ("ten minus three!", "ten minus three!"),
        ("What time is it in Tokyo!?", "What time is it in Tokyo"),
        ("What day is 2024-02-29!", "What day is 2024-02-29"),
        ("increase 50 by 20%!", "increase 50 by 20%"),
    ],
)
def test_an_exclamation_mark_after_a_number_stays(question: str, left: str) -> None:
    """It may be a factorial; after a word or a date it is none."""
    assert unpunctuated(question) == left
