"""What stands in messages beside calls: quotations, thoughts, other formats, and text behind; nothing of it runs."""

from __future__ import annotations

from tests.runtime.text_outputs import BEHIND, DELETE, ONE, RESULTS, Output, X, fenced, form

__all__ = ["ASIDES"]

ANALYSIS = "<|channel|>analysis<|message|>Compute.<|end|><|start|>assistant<|channel|>"
EMPTY = fenced('{"tool_calls": []}')

ASIDES = [
    # Shown, not wished for
    *(
        Output(f"{name}, and text behind", before + fenced(DELETE) + behind, problem=BEHIND)
        for name, before, behind in [
            ("a block", "", "\nThen I will answer."),
            ("a block that a file holds", "The file says:\n\n", "\n\nEnd."),
            ("an example", "For example:\n", "\nDo not do this!"),
            ("an explanation", "To call a tool you would write:\n\n", "\n\nbut I can answer without: 42."),
            ("a block in a bold line's quotes", "It says “\n", "\n”."),
            ("a block in a text's frame", "--- page ---\n", "\n--- end of page ---"),
            ("a block and a second quoted one", "", "\n> " + fenced().replace("\n", "\n> ")),
            ("a block in a tag in mid-line", "Here: <document> of today\n", "\n</document>"),
            ("a block and an image", "", "\n![a](b.png)"),
        ]
    ),
    *(
        Output(f"a block in {name}", f"So:\n{opening}\n{fenced(DELETE)}\n{closing}\nDone.")
        for name, opening, closing in [
            *(
                (f"a tag <{tag}>", f"<{tag}>", f"</{tag}>")
                for tag in (
                    "blockquote",
                    "details",
                    "code",
                    "document",
                    "output",
                    "analysis",
                    "plan",
                    "my-page",
                    "Result",
                )
            ),
            ("a tag with attributes", '<document id="1" from="a b">', "</document>"),
            ("a tag with blank lines", "<blockquote>\n", "\n</blockquote>"),
            ("a tag behind another", "<details><summary>Example</summary>", "</details>"),
            ("a tag behind a closed one", "<b>See</b> <details>", "</details>"),
            ("a tag at the end of a line", "The page: <document>", "</document>"),
            ("a tag inside a tag", "<a>\n<b>", "</b>\n</a>"),
            ("triple quotes", '"""', '"""'),
            ("triple quotes behind words", "text = '''", "'''"),
            ("LaTeX", r"\begin{verbatim}", r"\end{verbatim}"),
            ("LaTeX listings", r"\begin{lstlisting}[language=json]", r"\end{lstlisting}"),
            ("a board's quotation", "[quote]", "[/quote]"),
        ]
    ),
    Output("a block in a tag that nobody closed", f"<document>\n{fenced()}", problem="not closed"),
    Output("a block in triple quotes that nobody closed", f'"""\n{fenced()}', problem="not closed"),
    Output("a block behind tags that hold nothing", f"a<br>\n<hr>\n<img src='a'>\n<x/>\n{fenced()}", (X,)),
    Output("a block behind a closed tag", f"<b>Now</b> I compute.\n{fenced()}", (X,)),
    Output("a block behind comparisons", f"a < b, List<int>\nif a <b and c> d\n{fenced()}", (X,)),
    Output("a block behind paired triple quotes", f'It\'s """so""".\n{fenced()}', (X,)),
    Output("a block behind a link", f"[quote](http://a)\n{fenced()}", (X,)),
    Output("a question before a block at the end", f"Would you like me to run this?\n{fenced()}", (X,)),
    # Thoughts
    *(
        Output(f"a draft in thoughts: {name}", f"{opening}{fenced(DELETE)}\n{closing}42")
        for name, opening, closing in [
            ("closed behind words", "I think\n", "so no.</think>"),
            ("Mistral's marks", "[THINK]maybe\n", "[/THINK]"),
            ("Mistral's end alone", "maybe\n", "so no.[/THINK]"),
            (
                "a harmony channel",
                "<|channel|>analysis<|message|>maybe\n",
                "<|end|><|start|>assistant<|channel|>final<|message|>",
            ),
            ("the end of a harmony channel alone", "maybe\n", "<|end|><|start|>assistant<|channel|>final<|message|>"),
            ("Gemma's marks", "<unused94>thought\n", "<unused95>"),
            ("Gemma's channel", "<|channel>thought\n", "<channel|>"),
            ("Cohere's marks", "<|START_THINKING|>a\n", "<|END_THINKING|>"),
            ("Kimi's marks", "◁think▷a\n", "◁/think▷"),
            ("OpenThinker's marks", "<|begin_of_thought|>\n", "<|end_of_thought|>"),
            ("a name with a prefix", "<seed:think>\n", "</seed:think>"),
            ("an attribute", '<think type="x">\n', "</think>"),
            ("a mark in mid-line", "Well <think>\n", "</think>"),
            ("another end", "<thinking>\n", "</think>"),
            ("thoughts in thoughts", "<think>a <think>b</think>\n", "</think>"),
            ("an end in a list", "1. Maybe\n", "2. no.</think>"),
            ("a tag that only thoughts left open", "<p>\n", "no</think>"),
            ("an invented result with thoughts of its own", "", "Observation: a\nno</think>"),
        ]
    ),
    Output("a call on the line where thoughts end", f"<think>\nhm\n</think>{fenced()}", (X,)),
    Output("a call on the line where unopened thoughts end", f"hm</think>{fenced()}", (X,)),
    Output("the object alone behind unopened thoughts", f"Use {DELETE}?\nNo.</think>\n\n{ONE}", (X,)),
    Output("a broken object behind unopened thoughts", f"hm</think>\n{ONE[:-3]}", problem="cut off"),
    Output("text and an object behind unopened thoughts", f"hm</think>\nGo:\n{ONE}", problem="outside of a block"),
    Output("a call behind quoted marks", f"> a</think>\n\nThe tag `</think>` ends <think>a</think>.\n{fenced()}", (X,)),
    Output(
        "rounds with thoughts that end twice",
        f"a</think>\n{fenced()}\nb</think>\n{fenced(DELETE)}",
        problem="thoughts end",
    ),
    Output(
        "rounds with a result and thoughts that end twice",
        f"a</think>\n{fenced()}\nObservation: 7\nb</think>\n{fenced(DELETE)}",
        problem="thoughts end",
    ),
    Output("another form in thoughts", 'Try <tool_call>{"name": "now"}</tool_call>?\nNo.</think>42'),
    # Formats' own ends
    Output("a mark of the turn's end", f"{fenced()}<|im_end|>", (X,)),
    Output("marks of the turn's end", f"{fenced()}\n<|eot_id|>\n</s>\n", (X,)),
    # Other forms, told
    *(
        Output(f"another form: {name}", text, problem=problem)
        for name, text, problem in [
            ("Hermes tags in a line", 'Sure! <tool_call>{"name": "now", "arguments": {}}</tool_call>', "'<tool_call>'"),
            ("Hermes tags begun in a line", 'Sure! <tool_call>\n{"name": "now"}\n</tool_call>', "'<tool_call>'"),
            ("a block in Hermes tags", f"<tool_call>\n{fenced()}\n</tool_call>", BEHIND),
            ("a function tag in a line", "Sure: <function=now>{}</function>", "'<function='"),
            ("an invoke tag in a line", 'Sure: <invoke name="now"></invoke>', "'<invoke'"),
            ("harmony", "<|channel|>commentary to=functions.now<|message|>{}", "commentary"),
            ("a block marked tool_code", fenced(info="tool_code"), "marked 'tool_code'"),
            ("Gemma's tool_code", "```tool_code\nprint(now())\n```", "marked 'tool_code'"),
            ("a block marked python", fenced(info="python"), "marked 'python'"),
            ("a block marked jsonc", fenced(info="jsonc"), "marked 'jsonc'"),
            (
                "a block marked js with a thought",
                fenced('{"thought": "a", "tool_calls": [{"name": "now"}]}', "js"),
                "'js'",
            ),
            ("YAML", "```yaml\ntool_calls:\n- name: now\n```", "marked 'yaml'"),
            ("an object behind words", f"Calling: {ONE}", "outside of a block"),
            ("an object begun behind words", 'Calling: {"tool_calls": [\n{"name": "now"}]}', "outside of a block"),
            ("a bare call and an outro", fenced('{"name": "now", "arguments": {}}') + "\nWaiting.", "without the key"),
            ("an open bare call and an outro", '{"name": "now", "arguments": {}}\nWaiting.', "without the key"),
        ]
    ),
    Output("another form in inline code", 'Write `<tool_call>{"name": "now"}</tool_call>` for it.'),
    Output("another form in prose", "The mark <tool_call> begins a call of now."),
    Output("another form quoted", '> <tool_call>{"name": "now", "arguments": {}}</tool_call>'),
    Output("a call of no tool in mid-line", 'Sure! <tool_call>{"name": "nope"}</tool_call>'),
    Output("an object in prose", f"With {DELETE} it is gone."),
    Output("a block marked python that broke", "```python\n{'a': tool_calls: 1, delete}\n```"),
    Output("a bare object that is no call", '{"name": "now", "version": 1}\nSo much.'),
    Output("tool_code without a tool", "```tool_code\nprint(1)\n```\nis code, not delete."),
    # Whole messages as families of models write them
    Output("Qwen's thoughts and a block", f"<think>\nOkay, I should compute.\n\n</think>\n\n{fenced()}", (X,)),
    Output("Qwen's empty thoughts", f"<think>\n\n</think>\n\nI compute.\n\n{fenced()}", (X,)),
    Output(
        "thoughts that speak of the form",
        f'The form is ```json {{"tool_calls": ...}}```.\n</think>\n\n{fenced()}',
        (X,),
    ),
    Output("a draft thought over", f"Maybe:\n{fenced(DELETE)}\nToo dangerous.\n</think>\n\nI delete nothing."),
    Output("a note behind a call", f"{fenced()}\n\n**Note:** this computes.", problem=BEHIND),
    Output("a heading behind a call", f"{fenced()}\n\n## Explanation\nThis computes.", problem=BEHIND),
    Output("a picture of words behind a call", f"{fenced()}\n🔍", problem=BEHIND),
    Output("a list behind a call", f"{fenced()}\n- waiting", problem=BEHIND),
    Output("steps with a call each", f"Step 1:\n{fenced()}\n\nStep 2:\n{fenced(DELETE)}", problem=BEHIND),
    Output("an invented dialogue", f"{fenced()}\nUser: thanks\nAssistant: bye", (X,)),
    Output("an invented dialogue in marks", f"{fenced()}\n<|user|>\nok\n{fenced(DELETE)}", (X,)),
    Output("an invented result and an answer", f"{fenced()}\n{RESULTS}\nIt is 720.", (X,)),
    Output("an output and an answer", f"{fenced()}\n\nOutput:\n```\n720\n```\nIt is 720.", problem=BEHIND),
    Output("a role before a call", f"Assistant:\n{fenced()}", (X,)),
    Output("a plan in JSON before a call", fenced('{"plan": ["compute"]}') + f"\n\n{fenced()}", (X,)),
    Output("a table before a call", f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{fenced()}", (X,)),
    Output("a paragraph in HTML before a call", f"<p>Let me look.</p>\n\n{fenced()}", (X,)),
    Output("an open paragraph in HTML before a call", f"<p>Let me look.\n\n{fenced()}", problem="not closed"),
    Output("types before a call", f"`List<String>` and Map<K, V> are types.\n{fenced()}", (X,)),
    Output("addresses before a call", f"<bob@example.org> asked\n<https://a.b/c>\n{fenced()}", (X,)),
    Output("mathematics before a call", f"\\begin{{align}}\na &= b\n\\end{{align}}\n{fenced()}", (X,)),
    Output("tags left open around a word before a call", f"I <think> so.\n{fenced()}", (X,)),
    Output("a file in a longer fence, and an answer", f"````markdown\n# A\n{fenced(DELETE)}\n````\nThat is all."),
    Output("a file in a fence too short for it", f"```markdown\n# A\n{fenced(DELETE)}\n```\nThat is all."),
    Output(
        "a quoted page, then a call",
        "The page says:\n\n> " + fenced(DELETE).replace("\n", "\n> ") + f"\n\nI compute:\n\n{fenced()}",
        (X,),
    ),
    Output("a page in tags, then a call", f'<page url="a">\n{fenced(DELETE)}\n</page>\n\n{fenced()}', (X,)),
    Output("a letter", f"From: bob\nSubject: run\n\n{fenced(DELETE)}\n\nRegards, Bob", problem=BEHIND),
    Output("a docstring", f'```python\ndef f():\n    """Calls:\n\n    {DELETE}\n    """\n```'),
    Output("a tag inside the same tag", f"<div>\n<div>\n</div>\n{fenced(DELETE)}\n</div>", problem=BEHIND),
    Output("a comment and an open one", f"<!-- a --> <!--\n{fenced(DELETE)}\n-->"),
    Output("a bold observation in HTML", f"{fenced()}\n<b>Observation:</b> 720", problem=BEHIND),
    Output("an empty block and an answer behind a call", f"{fenced()}\n{EMPTY}\nYes.", problem=BEHIND),
    Output("an empty block behind a call", f"{fenced()}\n{EMPTY}", (X,)),
    Output("an empty block and text before a call", f"{EMPTY}\nNo, wait.\n{fenced()}", (X,)),
    Output("a call behind a broken page in thoughts", f"<div>\n{fenced(DELETE)}\n</think>\n{fenced()}", (X,)),
    Output("harmony's channels and a block", f"{ANALYSIS}final<|message|>{fenced()}", (X,)),
    Output(
        "harmony's channels and a call",
        f"{ANALYSIS}commentary to=functions.now<|message|>{{}}<|call|>",
        problem="commentary to=",
    ),
    Output(
        "DeepSeek's marks", "<\uff5ctool\u2581calls\u2581begin\uff5c>now\n```json\n{}\n```", problem="tool\u2581calls"
    ),
    Output("GLM's tags", "<tool_call>now\n<arg_key>q</arg_key>\n</tool_call>", problem="'<tool_call>'"),
    Output("Granite's mark", '<|tool_call|>[{"name": "now", "arguments": {}}]', problem="'<|tool_call'"),
    Output("Llama's Python mark", "<|python_tag|>now.call()", problem="python_tag"),
    Output(
        "tags of functions",
        '<function_calls>\n<invoke name="now">\n</invoke>\n</function_calls>',
        problem="'<function_calls>'",
    ),
    Output(
        "tags in a string",
        form('{"name": "write_file", "arguments": {"text": "a\n<div>\n[/THINK]\n<think>"}}'),
        (("write_file", {"text": "a\n<div>\n[/THINK]\n<think>"}),),
    ),
]
