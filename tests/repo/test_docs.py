"""README and docs promise only what runs, and describe all that there is."""

import inspect
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import atlas_core
from atlas_core import hookspecs

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("plugins/*/README.md"), *ROOT.glob("docs/**/*.md")])
RUN = 'pip install uv && uv run atlas run "What is the square root of 144 multiplied by 5?"'
TEST = "pip install uv && uv run nox"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def _links(page: Path) -> list[str]:
    inline = [child for token in _tokens(page) for child in token.children or []]
    return [str(token.attrs["href"]) for token in inline if token.type == "link_open"]


def _anchors(page: Path) -> set[str]:
    """Return the fragments of a page's headings as GitHub spells them."""
    tokens = _tokens(page)
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_readme_holds_the_two_commands_and_no_third() -> None:
    """The first lines a newcomer copies are these two, word for word, and nothing else begins like them."""
    assert re.findall(r"^(?:\$ )?(pip install uv && uv run .+)$", README, re.MULTILINE) == [RUN, TEST]


def test_readme_shows_the_commands_on_its_first_screen() -> None:
    """Both commands stand within the first 40 lines, and so does what was tested."""
    screen = "\n".join(README.splitlines()[:40])
    for part in (RUN, TEST, "Linux", "Python 3.11", "from source"):
        assert part in screen


def test_ci_runs_the_command_of_the_readme() -> None:
    """CI calls the README's test command, so that it can't pass where a newcomer's run fails."""
    assert TEST in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_resolve(page: Path) -> None:
    """A link inside the repository leads to a file that is there, and to a heading that it has."""
    for link in _links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if fragment and target.suffix == ".md":
            assert fragment in _anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_blocks_are_of_languages_that_run(page: Path) -> None:
    """A code block names its language; `sh` holds only lines that install, `text` only what is no program."""
    for token in _tokens(page):
        assert token.type != "code_block", f"indented code in line {token.map}: fence it"
        if token.type != "fence":
            continue
        assert token.info in {"python", "toml", "console", "json", "sh", "text"}, f"line {token.map}: {token.info!r}"
        if token.info == "sh":
            lines = [line for line in token.content.splitlines() if line.strip()]
            assert [
                line for line in lines if not re.match(r"(pip|uv|git|cd|nox|python3? -m venv|source|\.|#) ", line)
            ] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_skipped_blocks_give_a_reason(page: Path) -> None:
    """A block is left out only for a stated reason, one block at a time."""
    for directive in re.findall(r"<!--+\s*skip.*", page.read_text(encoding="utf-8")):
        assert re.fullmatch(r'<!-- skip: next "[^"]{8,}" -->', directive)


def test_every_page_can_be_reached() -> None:
    """Each page is reached by links from docs/index.md, and the README links to that."""
    assert "docs/index.md" in README
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = [
            (page.parent / link.partition("#")[0]).resolve() for link in _links(page) if not re.match(r"[a-z]+:", link)
        ]
        waiting += [link for link in links if link.suffix == ".md" and link.is_file()]
    assert [_name(page) for page in PAGES if page not in reached and page.name != "README.md"] == []


@pytest.mark.parametrize("hook", hookspecs.__all__)
def test_hook_is_documented_with_its_arguments(hook: str) -> None:
    """docs/reference/hooks.md has a section for each hook that names each of its arguments and is no older than it."""
    text = (ROOT / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")
    section = re.search(rf"^#+ .*`{hook}\b.*?(?=^#+ .*`atlas_|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"no heading names `{hook}`"
    for argument in inspect.signature(getattr(hookspecs, hook)).parameters:
        assert f"`{argument}`" in section[0] or re.search(rf"def {hook}\([^)]*\b{argument}\b", section[0])


def test_reference_is_up_to_date() -> None:
    """docs/reference/api.md says what each public name is, as its script writes it (`python docs/reference/api.py`)."""
    script = ROOT / "docs" / "reference" / "api.py"
    done = subprocess.run([sys.executable, str(script), "--print"], capture_output=True, text=True, check=True)
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert done.stdout == page, "run `python docs/reference/api.py`"
    for name in atlas_core.__all__:
        assert f"`{name}`" in done.stdout
    assert [line for line in done.stdout.splitlines() if re.match(r"\| `\w+` \|  \|", line)] == []
