from __future__ import annotations

import pytest
from atlas_llama.grammar import SENTINEL
from atlas_llama.holding import Holding, make_holding, probe_body
from atlas_llama.wire import Call, Written

from atlas_core import ProviderError, ToolSchema

PAIR = ToolSchema(
    name="pair",
    parameters={
        "type": "object",
        "properties": {"ids": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
        "required": ["ids"],
    },
)
WORD = ToolSchema(
    name="word", parameters={"type": "object", "properties": {"w": {"type": "string", "pattern": r"^\p{L}+$"}}}
)


class Llama:
    """Takes a grammar unless it holds one of some texts."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[str] = []

    async def works(self, grammar: str) -> bool:
        self.asked.append(grammar)
        assert f'start: "{SENTINEL}"' in grammar
        return not any(text in grammar for text in self.refused)


async def holding(llama: Llama, *tools: ToolSchema, answer: dict[str, object] | None = None) -> Holding:
    return await make_holding(tools, answer, end_ids=(2,), works=llama.works)


async def test_all_is_tried_at_once() -> None:
    """Where llama.cpp takes the closest grammar, one question is enough."""
    llama = Llama()
    made = await holding(llama, PAIR, WORD)
    assert len(llama.asked) == 1
    assert made.names == ("pair", "word")
    assert r'"pattern": "^\\p{L}+$"' in made.grammar
    assert SENTINEL not in made.grammar


async def test_only_the_schema_that_is_refused_gets_looser() -> None:
    """The other tools keep theirs."""
    made = await holding(Llama("pattern"), PAIR, WORD)
    assert "pattern" not in made.grammar
    assert '"minimum"' in made.grammar
    loosest = await holding(Llama("pattern", '"w"'), PAIR, WORD)
    assert 'call_1_arguments: %json {"type": "object", "x-guidance"' in loosest.grammar


async def test_without_any_grammar_nothing_runs() -> None:
    """Answering unheld would be a silent loss of the promise."""
    with pytest.raises(ProviderError, match="takes no grammar for 1 tools"):
        await holding(Llama("%llguidance"), PAIR)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param(Written(text="words"), None, id="words"),
        pytest.param(Written(text="", calls=(Call("pair", '{"ids": [1, 2]}'),)), None, id="a call that fits"),
        pytest.param(
            Written(text="", calls=(Call("pair", '{"ids": [1, 1]}'),)),
            "arguments of 'pair' .* has non-unique elements .*ids.* Call it again",
            id="what no grammar can hold",
        ),
        pytest.param(Written(text="", calls=(Call("pair", '{"ids": [1e999]}'),)), "JSON compliant", id="infinity"),
        pytest.param(
            Written(text="", calls=(Call("pair", '{"ids": ' + "[" * 100_000 + "]" * 100_000 + "}"),)),
            "nested too deeply",
            id="a tower of lists",
        ),
        pytest.param(Written(text="", rest="<tool_call>\n{"), "no complete call", id="half a call"),
        pytest.param(Written(text="", calls=(Call("word", '{"w": "1"}'),)), None, id="a pattern of another dialect"),
    ],
)
async def test_problem(written: Written, problem: str | None) -> None:
    """What the grammar leaves open is checked, and told in words that the model can act on."""
    import re

    found = (await holding(Llama(), PAIR, WORD)).problem(written)
    assert found is None if problem is None else found is not None and re.search(problem, found)


async def test_the_answers_own_schema_is_checked() -> None:
    """But not where the model calls a tool instead."""
    made = await holding(Llama(), PAIR, answer={"type": "object", "not": {"required": ["x"]}})
    assert made.problem(Written(text='{"y": 1}')) is None
    assert "does not meet the schema" in str(made.problem(Written(text='{"x": 1}')))
    assert made.problem(Written(text="", calls=(Call("pair", '{"ids": []}'),))) is None


def test_a_probe_costs_one_token() -> None:
    """It is answered by the sentinel's beginning, or the grammar is not in force."""
    assert probe_body("g") == {"prompt": "\n", "max_tokens": 1, "temperature": 0, "grammar": "g"}
    assert Holding.begins_probe(SENTINEL[:1])
    assert Holding.begins_probe(SENTINEL + "x")
    assert not Holding.begins_probe("-")
