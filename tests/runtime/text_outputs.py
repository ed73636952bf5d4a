"""What models really write in the text protocol, and how each message is to be read; `text_asides` has more."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BEHIND", "DELETE", "OFFERED", "ONE", "OUTPUTS", "RESULTS", "WROTE", "Output", "X", "fenced", "form"]

OFFERED = ("calculator_tool", "write_file", "search.web", "delete", "now")


class Output(NamedTuple):
    """A message and its reading: calls as name and arguments, and words of the problem, or None."""

    id: str
    text: str
    calls: tuple[tuple[str, dict[str, object]], ...] = ()
    problem: str | None = None


def calc(**arguments: object) -> tuple[str, dict[str, object]]:
    """Return a call of the calculator as read."""
    return "calculator_tool", arguments


X = calc(expression="144 * 5")
ONE = '{"tool_calls": [{"name": "calculator_tool", "arguments": {"expression": "144 * 5"}}]}'
DELETE = '{"tool_calls": [{"name": "delete", "arguments": {"path": "/"}}]}'
GONE = ("delete", {"path": "/"})


def fenced(body: str = ONE, info: str = "json", fence: str = "```") -> str:
    """Put a body into a block."""
    return f"{fence}{info}\n{body}\n{fence}"


def form(call: str) -> str:
    """Put a call into a block with one call."""
    return fenced(f'{{"tool_calls": [{call}]}}')


BEHIND = "text stands behind a block with calls"
WROTE = "a result that you wrote yourself"
OPEN = fenced('{"tool_calls": [{"name": "write_file", "arguments": {"text": "abc}}]}')
RESULTS = fenced('{"tool_results": [{"id": "t1-1", "result": 720}]}')

OUTPUTS = [
    # As asked for
    Output("a json block", fenced(), (X,)),
    Output("a block after thoughts", f"I need the product.\n\n{fenced()}", (X,)),
    Output("a block without info string", fenced(info=""), (X,)),
    Output("a tool_call block", fenced(info="tool_call"), (X,)),
    Output("an info string in capitals", fenced(info="JSON"), (X,)),
    Output("an info string behind a space", fenced(info=" json "), (X,)),
    Output("a tilde fence", fenced(fence="~~~"), (X,)),
    Output("a longer fence", fenced(fence="`````"), (X,)),
    Output("a closing fence longer than the opening one", f"```json\n{ONE}\n`````", (X,)),
    Output("a fence at column three", f"   ```json\n   {ONE}\n   ```", (X,)),
    Output("no fence, the object alone", ONE, (X,)),
    Output("the object alone over several lines", ONE.replace(" ", "\n  "), (calc(expression="144\n  *\n  5"),)),
    Output(
        "two calls in one list", form('{"name": "now"}, {"name": "now", "arguments": {}}'), (("now", {}), ("now", {}))
    ),
    Output("two blocks", f"Both.\n{fenced()}\n{fenced()}", (X, X)),
    Output("two blocks with blank lines around", f"{fenced()}\n\n \n{fenced()}\n\n", (X, X)),
    Output("CRLF line ends", f"Go.\r\n```json\r\n{ONE}\r\n```\r\n", (X,)),
    Output("CR line ends", f"Go.\r```json\r{ONE}\r```\r", (X,)),
    Output("a byte order mark", f"\ufeff{fenced()}", (X,)),
    Output("a byte order mark before the object alone", f"\ufeff{ONE}", (X,)),
    Output("a dotted name", form('{"name": "search.web", "arguments": {"q": "a"}}'), (("search.web", {"q": "a"}),)),
    Output("other keys beside the calls", fenced('{"thought": "hm", "tool_calls": [{"name": "now"}]}'), (("now", {}),)),
    Output("an empty list of calls", fenced('{"tool_calls": []}')),
    Output("null in place of the list", fenced('{"tool_calls": null}')),
    Output("thoughts in tags before the block", f"<think>\nDraft:\n{fenced(DELETE)}\n</think>\n{fenced()}", (X,)),
    Output("thoughts in tags before the object alone", f"<think>no block</think>\n\n{ONE}", (X,)),
    Output("thoughts whose opening tag is the template's", f"Draft:\n{fenced(DELETE)}\n</think>\n\n{fenced()}", (X,)),
    Output(
        "a draft with an invented result in thoughts", f"{fenced(DELETE)}\nObservation: x\n</think>\n{fenced()}", (X,)
    ),
    Output("a draft in thoughts and no call", f"<think>\n{fenced(DELETE)}\n</think>\nDone."),
    # Repairs of form
    Output("trailing commas", fenced('{"tool_calls": [{"name": "now", "arguments": {},},],}'), (("now", {}),)),
    Output("a // comment", fenced('{"tool_calls": [ // one\n{"name": "now"}]}'), (("now", {}),)),
    Output("a # comment", fenced('# a call\n{"tool_calls": [{"name": "now"}]} # end'), (("now", {}),)),
    Output("a /* */ comment", fenced('{"tool_calls": [/* {"name": "delete"}, */{"name": "now"}]}'), (("now", {}),)),
    Output(
        "Python literals",
        form("{'name': 'calculator_tool', 'arguments': {'a': True, 'b': None, 'c': False}}"),
        (calc(a=True, b=None, c=False),),
    ),
    Output(
        "single quotes around double ones",
        form("{'name': 'calculator_tool', 'arguments': {'a': 'say \"hi\"'}}"),
        (calc(a='say "hi"'),),
    ),
    Output(
        "an escaped quote in single ones",
        form("{'name': 'calculator_tool', 'arguments': {'a': 'it\\'s'}}"),
        (calc(a="it's"),),
    ),
    Output("typographic quotes as delimiters", fenced(ONE.replace('"', "“").replace("“:", "”:")), (X,)),
    Output(
        "typographic quotes inside a string",
        form('{"name": "calculator_tool", "arguments": {"a": "“x”, it’s"}}'),
        (calc(a="“x”, it’s"),),
    ),
    Output("keys without quotes", form('{name: "calculator_tool", arguments: {a: 1}}'), (calc(a=1),)),
    Output(
        "arguments as a JSON string", form('{"name": "calculator_tool", "arguments": "{\\"a\\": 1}"}'), (calc(a=1),)
    ),
    Output("arguments as an empty string", form('{"name": "now", "arguments": ""}'), (("now", {}),)),
    Output("arguments null", form('{"name": "now", "arguments": null}'), (("now", {}),)),
    Output("parameters for arguments", form('{"name": "calculator_tool", "parameters": {"a": 1}}'), (calc(a=1),)),
    Output("args for arguments", form('{"name": "calculator_tool", "args": {"a": 1}}'), (calc(a=1),)),
    Output("tool for name", form('{"tool": "calculator_tool", "arguments": {"a": 1}}'), (calc(a=1),)),
    Output("action and action_input", form('{"action": "calculator_tool", "action_input": {"a": 1}}'), (calc(a=1),)),
    Output(
        "the chat format with function inside",
        form('{"id": "c1", "type": "function", "function": {"name": "calculator_tool", "arguments": "{\\"a\\": 1}"}}'),
        (calc(a=1),),
    ),
    Output("function as the name's key", form('{"function": "calculator_tool", "arguments": {"a": 1}}'), (calc(a=1),)),
    Output("one object for the list", fenced('{"tool_calls": {"name": "now", "arguments": {}}}'), (("now", {}),)),
    Output("a remark inside a call", form('{"name": "now", "arguments": {}, "reason": "to know"}'), (("now", {}),)),
    Output(
        "a missing comma",
        fenced('{"tool_calls": [{"name": "calculator_tool" "arguments": {"a": 1.50 "b": 2}}]}'),
        (calc(a=1.5, b=2),),
    ),
    Output("a missing comma between calls", form('{"name": "now"}\n{"name": "now"}'), (("now", {}), ("now", {}))),
    Output(
        "numbers as Python writes them",
        form('{"name": "calculator_tool", "arguments": {"a": +1, "b": .5, "c": 2.}}'),
        (calc(a=1, b=0.5, c=2.0),),
    ),
    Output("the closing fence on the object's line", f"```json\n{ONE}```\n", (X,)),
    Output(
        "line breaks inside a string",
        form('{"name": "write_file", "arguments": {"text": "a\nb\tc"}}'),
        (("write_file", {"text": "a\nb\tc"}),),
    ),
    # Strings that look like structure
    Output(
        "a fence inside a string",
        form('{"name": "write_file", "arguments": {"text": "# A\\n```python\\nx\\n```\\n"}}'),
        (("write_file", {"text": "# A\n```python\nx\n```\n"}),),
    ),
    Output(
        "a fence inside a string with real line breaks",
        form('{"name": "write_file", "arguments": {"text": "A\n```python\nx\n```\nB"}}'),
        (("write_file", {"text": "A\n```python\nx\n```\nB"}),),
    ),
    Output(
        "a call inside a string",
        form(
            '{"name": "write_file", "arguments": '
            '{"text": "```json\\n{\\"tool_calls\\": [{\\"name\\": \\"delete\\"}]}\\n```"}}'
        ),
        (("write_file", {"text": '```json\n{"tool_calls": [{"name": "delete"}]}\n```'}),),
    ),
    Output(
        "a call with real line breaks inside a string",
        form(
            '{"name": "write_file", "arguments": '
            "{\"text\": \"A\n```json\n{'tool_calls': [{'name': 'delete'}]}\n```\nB\"}}"
        ),
        (("write_file", {"text": "A\n```json\n{'tool_calls': [{'name': 'delete'}]}\n```\nB"}),),
    ),
    Output(
        "braces inside a string over several lines",
        fenced('{\n "tool_calls": [\n  {"name": "write_file",\n   "arguments": {"text": "if (x) { y[0] }}"}}\n ]\n}'),
        (("write_file", {"text": "if (x) { y[0] }}"}),),
    ),
    Output(
        "the end of thoughts inside a string",
        form('{"name": "write_file", "arguments": {"text": "a\n</think>\nb"}}'),
        (("write_file", {"text": "a\n</think>\nb"}),),
    ),
    Output(
        "an observation inside a string",
        form('{"name": "write_file", "arguments": {"text": "a\nObservation: b"}}'),
        (("write_file", {"text": "a\nObservation: b"}),),
    ),
    Output(
        "comment signs inside a string",
        form('{"name": "search.web", "arguments": {"q": "http://a/#b /* c */"}}'),
        (("search.web", {"q": "http://a/#b /* c */"}),),
    ),
    Output(
        "an empty string and deep values",
        form('{"name": "calculator_tool", "arguments": {"": [[], {}, [{"a": [1, -2.5e3]}]]}}'),
        (calc(**{"": [[], {}, [{"a": [1, -2500.0]}]]}),),
    ),
    # Wishes that can't be followed
    Output(
        "an unknown tool",
        form('{"name": "calculator", "arguments": {}}'),
        problem="no tool 'calculator'; the nearest are calculator_tool",
    ),
    Output(
        "a tool in other spelling",
        form('{"name": "Calculator-Tool", "arguments": {}}'),
        problem="nearest are calculator_tool",
    ),
    Output(
        "a tool unlike any other",
        form('{"name": "zzzzz", "arguments": {}}'),
        problem="there are calculator_tool, delete",
    ),
    Output("one unknown tool among several calls", form('{"name": "now"}, {"name": "nope"}'), problem="'nope'"),
    Output("a good block and a bad one", f"{fenced()}\n{form('{')}", problem="where a key or '}' belongs"),
    Output("a bad block and a good one", f"{form('7')}\n{fenced()}", problem="call 1 is a number"),
    Output(
        "a block cut inside a string",
        '```json\n{"tool_calls": [{"name": "write_file", "arguments": {"text": "hel',
        problem="cut off",
    ),
    Output("a block cut between brackets", '```json\n{"tool_calls": [{"name": "now"', problem="cut off"),
    Output("a whole object whose fence is not closed", f"```json\n{ONE}\n", problem="fence is not closed"),
    Output("a fence cut in half", f"```json\n{ONE}\n``", problem="cut off"),
    Output("the object alone, cut", ONE[:-2], problem="cut off"),
    Output("brackets missing before the fence", fenced('{"tool_calls": [{"name": "now"'), problem="cut off"),
    Output("brackets that don't match", fenced('{"tool_calls": [{"name": "now"]}'), problem="brackets don't match"),
    Output(
        "a string left open before the fence",
        OPEN + '\nSo "it" is.',
        problem="cut off",
    ),
    Output(
        "a string left open before another block",
        f"{OPEN}\n{fenced(DELETE)}",
        problem="cut off",
    ),
    Output(
        "a lone fence inside a string",
        form('{"name": "write_file", "arguments": {"text": "a\n```\nb"}}'),
        problem="lone fence",
    ),
    Output(
        "unescaped quotes inside a string",
        form('{"name": "write_file", "arguments": {"text": "he said "hi" to me"}}'),
        problem="is not JSON at 'hi\"",
    ),
    Output("a double comma", form('{"name": "now"},, {"name": "now"}'), problem="where a value belongs"),
    Output(
        "an unknown escape",
        form('{"name": "write_file", "arguments": {"path": "C:\\dir"}}'),
        problem="each backslash twice",
    ),
    Output("NaN", form('{"name": "calculator_tool", "arguments": {"a": NaN}}'), problem="NaN is no JSON number"),
    Output(
        "minus Infinity",
        form('{"name": "calculator_tool", "arguments": {"a": -Infinity}}'),
        problem="-Infinity is no JSON number",
    ),
    Output(
        "a number with leading zeros",
        form('{"name": "calculator_tool", "arguments": {"a": 007}}'),
        problem="'007' is no JSON number",
    ),
    Output(
        "a key twice in the arguments",
        form('{"name": "delete", "arguments": {"path": "a", "path": "b"}}'),
        problem="'path' stands twice",
    ),
    Output(
        "the list of calls twice",
        fenced('{"tool_calls": [], "tool_calls": [{"name": "delete"}]}'),
        problem="'tool_calls' stands twice",
    ),
    Output(
        "two names for one call",
        form('{"name": "now", "tool": "delete", "arguments": {}}'),
        problem="'name' and 'tool'",
    ),
    Output(
        "two sets of arguments",
        form('{"name": "delete", "arguments": {}, "parameters": {"path": "a"}}'),
        problem="'arguments' and 'parameters'",
    ),
    Output(
        "a name inside and outside of function",
        form('{"name": "now", "function": {"name": "delete", "arguments": {}}}'),
        problem="'name' twice",
    ),
    Output(
        "arguments beside the name", form('{"name": "calculator_tool", "expression": "1"}'), problem="key 'expression'"
    ),
    Output(
        "an argument beside the arguments",
        form('{"name": "delete", "arguments": {"path": "a"}, "dry_run": true}'),
        problem="key 'dry_run'",
    ),
    Output("a call without a name", form('{"arguments": {"a": 1}}'), problem='call 1 has no "name"'),
    Output("the name as a key", form('{"calculator_tool": {"a": 1}}'), problem='call 1 has no "name"'),
    Output("a name that is a number", form('{"name": 5, "arguments": {}}'), problem="name of call 1 is a number"),
    Output("a call that is a string", form('"now"'), problem="call 1 is a string"),
    Output("calls as a string", fenced('{"tool_calls": "now"}'), problem='"tool_calls" is a string'),
    Output(
        "arguments as a list",
        form('{"name": "calculator_tool", "arguments": [1, 2]}'),
        problem="arguments of call 1 are a list",
    ),
    Output(
        "arguments as plain words",
        form('{"name": "calculator_tool", "arguments": "2 + 2"}'),
        problem="arguments of call 1 are a string",
    ),
    Output(
        "arguments as a cut JSON string",
        form('{"name": "delete", "arguments": "{\\"path\\": \\"a"}'),
        problem="arguments of call 1 are a string, and the string that begins",
    ),
    Output(
        "a remark as the object's second key, alone",
        '{"thought": "hm", "tool_calls": [{"name": "now"}]}',
        (("now", {}),),
    ),
    Output("the object alone, with an unknown tool", '{"tool_calls": [{"name": "nope"}]}', problem="'nope'"),
    Output(
        "the object alone, with a missing comma",
        '{"tool_calls": [{"name": "now"} {"name": "now"}]}',
        (("now", {}), ("now", {})),
    ),
    Output("an answer of JSON that holds the key inside", '{"answer": {"tool_calls": [{"name": "delete"}]}}'),
    Output("an answer of broken JSON that holds the key inside", '{"answer": {"tool_calls": [{"name": "delete"}]'),
    Output("an answer of JSON, then text", '{"answer": {"tool_calls": []}}\nSo much.'),
    Output(
        "arguments as two JSON values in a string",
        form('{"name": "delete", "arguments": "{} {}"}'),
        problem="more than one value",
    ),
    Output(
        "arguments as a list in a string",
        form('{"name": "delete", "arguments": "[]"}'),
        problem="arguments of call 1 are a list",
    ),
    Output("two objects in one block", fenced(f"{ONE}\n{ONE}"), problem="more than one object"),
    Output("words behind the object in its block", fenced(f"{ONE}\nI call it now."), problem="more than one object"),
    Output("too many brackets at the end", fenced(ONE + "}"), problem="more than one object"),
    Output("a nesting bomb", fenced('{"tool_calls": ' + "[" * 5000 + "]" * 5000 + "}"), problem="nested more than"),
    Output(
        "the prompt's own example",
        fenced('{"tool_calls": [{"name": "<tool name>", "arguments": {}}]}'),
        problem="no tool '<tool name>'",
    ),
    # Meant as calls, outside of the frame
    Output("an object with text before it", f"I will compute.\n{ONE}", problem="outside of a block"),
    Output("an object with text behind it", f"{ONE}\n\nThat is the call.", problem="outside of a block"),
    Output("an object in the text beside a block", f"{DELETE}\nor\n{fenced()}", problem="outside of a block"),
    Output("an object in the text behind a block", f"{fenced()}\nand\n{DELETE}", problem="outside of a block"),
    Output(
        "a block in a string of an object in the text",
        "Go\n" + ONE.replace("144 * 5", f"A\n{fenced(DELETE)}\nB"),
        problem="outside of a block",
    ),
    Output("a block in a list item", f"1. Compute:\n   ```json\n   {ONE}\n   ```", problem="list item"),
    Output(
        "a fence in a list whose end is unclear",
        f"1. Compute\nthis:\n   ```\n{fenced()}",
        problem="unclear where a list",
    ),
    Output("a block marked tool_calls", fenced(info="tool_calls"), problem="marked 'tool_calls'"),
    Output("a block on one line", f"```json {ONE}```", problem="on one line"),
    Output("an object on the fence's line", f"~~~json {ONE}\n~~~", problem="is only shown"),
    Output(
        "a call without the key at the end",
        fenced('{"name": "calculator_tool", "arguments": {"a": 1}}'),
        problem="without the key 'tool_calls'",
    ),
    Output("a bare call", '{"name": "calculator_tool", "arguments": {"a": 1}}', problem="without the key 'tool_calls'"),
    Output("a bare list of calls", '[{"name": "now", "arguments": {}}]', problem="without the key 'tool_calls'"),
    Output(
        "a call under a key like the right one",
        fenced('{"tool_call": {"name": "now", "arguments": {}}}'),
        problem="without the key 'tool_calls'",
    ),
    Output(
        "calls in a list under another key", '{"actions": [{"tool": "now", "input": {}}]}', problem="without the key"
    ),
    Output("Hermes tags", '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', problem="'<tool_call>'"),
    Output("Mistral's mark", '[TOOL_CALLS] [{"name": "now", "arguments": {}}]', problem="'[TOOL_CALLS]'"),
    Output("Llama's function tag", "<function=now>{}</function>", problem="'<function='"),
    Output("an action in words", 'Thought: hm\nAction: calculator_tool\nAction Input: {"a": 1}', problem="'Action:'"),
    Output("a block in thoughts that nobody closed", f"<think>\nNow I call\n{fenced()}", problem="not closed"),
    # Text
    Output("an answer", "The result is 720."),
    Output("nothing", ""),
    Output("spaces", " \n\t\n"),
    Output("the word in prose", 'The key "tool_calls": [...] holds the calls; {"tool_calls": []} is one.'),
    Output("a JSON answer", fenced('{"answer": 720}')),
    Output("a JSON answer with the word inside", fenced('{"answer": {"tool_calls": [{"name": "delete"}]}}')),
    Output("a JSON answer that names a tool", fenced('{"name": "calculator_tool", "version": "1"}')),
    Output("a block marked text", fenced(DELETE, "text")),
    Output("a block marked example", fenced(DELETE, "example")),
    Output("a block in a quotation", "> ```json\n> " + DELETE + "\n> ```"),
    Output("a block in a quotation without spaces", ">```json\n>" + DELETE + "\n>```"),
    Output("a block in a nested quotation", "> > ```json\n> > " + DELETE + "\n> > ```"),
    Output("a block in indented code", "So:\n\n    ```json\n    " + DELETE + "\n    ```"),
    Output("a block indented by a tab", "So:\n\n\t```json\n\t" + DELETE + "\n\t```"),
    Output("a block inside a longer fence", f"````markdown\n{fenced(DELETE)}\n````"),
    Output("a block inside a fence of the other kind", f"~~~\n{fenced(DELETE)}\n~~~"),
    Output("a block inside a fence that nobody closed", f"````\n{fenced(DELETE)}"),
    Output("a block in a comment", f"<!-- {fenced(DELETE)}\n{fenced(DELETE)}\n-->\nDone."),
    Output("a block in preformatted HTML", f"<pre>\n{fenced(DELETE)}\n</pre>"),
    Output("a block in example tags", f"<example>\n{fenced(DELETE)}\n</example>\nLike that."),
    Output("a fence of two backticks", f"``json\n{ONE}\n``", problem="outside of a block"),
    Output("a call in inline code", f"Write `{DELETE}` to delete."),
    # Case 140
    Output(
        "rounds with observations invented",
        f"Thought: a\n{fenced()}\nObservation: 720\n{fenced(DELETE)}\nObservation: ok",
        (X,),
    ),
    Output(
        "rounds with a result block invented",
        f"{fenced()}\n{RESULTS}\n{fenced(DELETE)}",
        (X,),
    ),
    Output("rounds with a bold observation", f"{fenced()}\n**Observation:** 720\n{fenced(DELETE)}", (X,)),
    Output("rounds with a marked result block", f"{fenced()}\n```tool_output\n720\n```\n{fenced(DELETE)}", (X,)),
    Output(
        "rounds with a tag of results", f"{fenced()}\n<tool_response>\n720\n</tool_response>\n{fenced(DELETE)}", (X,)
    ),
    Output("rounds with the user's turn invented", f"{fenced()}\nUser: now delete all\n{fenced(DELETE)}", (X,)),
    Output("a broken block behind an invented result", f"{fenced()}\nObservation: 720\n{form('{')}", (X,)),
    Output(
        "an invented result glued to its fence",
        f'{fenced()}\n```json{{"tool_results": []}}\n```\n{fenced(DELETE)}',
        (X,),
    ),
    Output(
        "an invented result behind a call in another form",
        f"Action: now\nAction Input: {{}}\nObservation: noon\n{fenced(DELETE)}",
        problem="a result that you wrote yourself",
    ),
    Output(
        "an invented result behind a misspelt block",
        f"{fenced('{}')}\nObservation: noon\n{fenced(DELETE)}",
        problem="a result that you wrote yourself",
    ),
    Output("an observation behind a block that is no call", f"```\nls\n```\nObservation: none\n{fenced()}", (X,)),
    Output("an observation before the first call", f"Observation: it is late\n{fenced()}", (X,)),
    Output(
        "a final answer that quotes an action",
        "Final answer: 720. I did not run\n```text\nAction: delete\nAction Input: {}\n```",
    ),
    Output("an action and a final answer", f"{fenced()}\nFinal answer: 720", problem=BEHIND),
    *(
        Output(f"rounds with {name} invented", f"{fenced()}\n{invented}\n{fenced(DELETE)}", (X,))
        for name, invented in [
            ("Mistral's result", "[TOOL_RESULTS] 720"),
            ("a system's turn", "System: go on"),
            ("a turn under a heading", "### Instruction:\nGo on."),
            ("a turn under the user's heading", "### User:\nGo on."),
            ("a bare object of results", '{"tool_results": []}'),
            ("a turn in ChatML", "<|im_end|>\n<|im_start|>user\nGo on."),
            ("a turn in Llama's format", "<|eot_id|><|start_header_id|>user"),
            ("a turn between instruction marks", "[INST] Go on. [/INST]"),
            ("a result in thoughts of its own", "Observation: 7\n<think>\nSo on.\n</think>"),
        ]
    ),
    *(
        Output(f"rounds with {name} between", f"{fenced()}\n{between}\n{fenced(DELETE)}", problem=BEHIND)
        for name, between in [
            ("a line 'Result:'", "Result: ok"),
            ("a block of text", "```text\nok\n```"),
            ("a block of JSON", '```json\n{"result": "ok"}\n```'),
            ("a question", "Question: next"),
            ("a short question", "Q: next"),
            ("a word", "and"),
            ("a rule", "---"),
            ("a quotation", "> 720"),
            ("a list item", "- 720"),
            ("thoughts in tags", "<think>hm</think>"),
            ("a comment", "<!-- 720 -->"),
            ("a tag", "<output>720</output>"),
            ("indented text", "    720"),
        ]
    ),
    *(
        Output(f"a call after {name} at the beginning", f"{result}\n{fenced(DELETE)}", problem=WROTE)
        for name, result in [
            ("a tag of results", "<tool_response>\nok\n</tool_response>"),
            ("a result block", RESULTS),
            ("a block marked as a result", "```tool_output\nok\n```"),
            ("an object of results", '{"tool_results": []}'),
            ("Mistral's result", "[TOOL_RESULTS] ok [/TOOL_RESULTS]"),
        ]
    ),
]
