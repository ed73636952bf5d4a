from __future__ import annotations

import pytest
from atlas_offline.phrasing import forms


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
