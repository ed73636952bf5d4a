"""`atlas_core.settings.owned`: tables that belong to plugins, providers, executors and agent types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from atlas_core.errors import SettingsError
from atlas_core.owner import Owner
from atlas_core.settings.loaded import LoadedSettings
from atlas_core.settings.loader import load_settings
from atlas_core.settings.owned import NoOptions, validate_owned

_OWNER = Owner("acme", "atlas-acme", "1.0")


class _Retry(BaseModel):
    depth: int = 0


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 0


class _Options(BaseModel):
    apiUrl: str = ""  # noqa: N815  # mixed case is what is tried
    n: int = 0
    ratio: float = 0.0
    flag: bool = False
    names: list[str] = []
    root: Path | None = None
    secret_thing: SecretStr | None = None
    retry: _Retry = _Retry()
    servers: dict[str, _Retry] = {}
    steps: list[_Retry] = []
    extra: _Open = _Open()
    either: int | list[str] = 0
    count: int | bool = 0
    renamed: int = Field(0, validation_alias=AliasChoices("re-named", "old"))

    @field_validator("names")
    @classmethod
    def _short(cls, names: list[str]) -> list[str]:
        if len(names) > 3:
            raise ValueError("at most three names")
        return names


def _load(folder: Path, table: str, **environ: str) -> LoadedSettings:
    (folder / "settings.toml").write_text(f"[default.plugins.options.Acme]\n{table}\n")
    prefixed = {f"ATLAS_PLUGINS__OPTIONS__ACME__{name}": text for name, text in environ.items()}
    return load_settings(folder=folder, environ=prefixed)


def _validate(loaded: LoadedSettings, model: type[BaseModel] = _Options) -> Any:
    table = loaded.settings.plugins.options["Acme"]
    return validate_owned(model, table, key="plugins.options.acme", loaded=loaded, owner=_OWNER)


def test_a_table_becomes_its_owners_model(tmp_path: Path) -> None:
    """Nested tables, lists, paths and aliases are built as the model says."""
    options = _validate(
        _load(
            tmp_path,
            'apiUrl = "u"\nroot = "/x"\nratio = 2\nnames = ["a"]\nretry = {depth = 3}\nold = 4\ncount = true\n'
            "servers = {one = {depth = 1}}\nsteps = [{depth = 2}]\nextra = {any = [1]}",
        )
    )
    assert options == _Options.model_validate(
        {
            "apiUrl": "u",
            "root": "/x",
            "ratio": 2,
            "names": ["a"],
            "retry": {"depth": 3},
            "old": 4,
            "count": True,
            "servers": {"one": {"depth": 1}},
            "steps": [{"depth": 2}],
            "extra": {"any": [1]},
        }
    )


def test_texts_of_variables_become_what_the_model_asks_for(tmp_path: Path) -> None:
    """The owner's types decide: text stays text, numbers, lists and tables are read, at any depth, in any case."""
    options = _validate(
        _load(
            tmp_path,
            "n = 1",
            N="7",
            APIURL="123",
            NAMES="x, y",
            FLAG="yes",
            RATIO="1e-3",
            RETRY__DEPTH="4",
            SERVERS__ONE__DEPTH="5",
            STEPS="[{depth = 6}]",
            RE_NAMED="8",
            SECRET_THING="s3cret",
        )
    )
    assert (options.apiUrl, options.n, options.names, options.flag, options.ratio) == ("123", 7, ["x", "y"], True, 1e-3)
    assert (options.retry.depth, options.servers["one"].depth, options.steps[0].depth) == (4, 5, 6)
    assert options.renamed == 8
    assert options.secret_thing.get_secret_value() == "s3cret"


def test_a_whole_nested_table_may_come_from_a_variable(tmp_path: Path) -> None:
    """A variable that holds an inline table is read where the model has a table."""
    assert _validate(_load(tmp_path, "", RETRY="{depth = 2}")).retry.depth == 2


def test_a_file_is_not_read_like_a_variable(tmp_path: Path) -> None:
    """A text in a file is no list, and its keys are exact."""
    with pytest.raises(SettingsError, match="names is 'a, b', expected a list"):
        _validate(_load(tmp_path, 'names = "a, b"'))
    with pytest.raises(SettingsError, match=r"unknown key 'APIURL'.*did you mean 'apiUrl'"):
        _validate(_load(tmp_path, 'APIURL = "x"'))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("apiUrk = 1", "unknown key 'apiUrk' (key plugins.options.Acme.apiUrk, {place}); did you mean 'apiUrl'?"),
        ("zzz = 1", "unknown key 'zzz' (key plugins.options.Acme.zzz, {place}); known keys: apiUrl, count, "),
        (
            "retry = {deph = 1}",
            "unknown key 'deph' (key plugins.options.Acme.retry.deph, {place}); did you mean 'depth'?",
        ),
        ("steps = [{deph = 1}]", "unknown key 'deph' (key plugins.options.Acme.steps[0].deph, {place}); did you"),
        ("servers = {a = {deph = 1}}", "key plugins.options.Acme.servers.a.deph"),
        ("renamed = 1", "unknown key 'renamed'"),
        ("n = true", "n is True, expected a whole number (key plugins.options.Acme.n, {place})"),
        ("ratio = false", "ratio is False, expected a number"),
        ("retry = {depth = true}", "depth is True, expected a whole number"),
        ("steps = [{depth = true}]", "depth is True, expected a whole number"),
        ('n = "x"', "n is 'x', expected a whole number"),
        ("n = 1.5", "n is 1.5, expected a whole number"),
        (
            "apiUrl = 1",
            'apiUrl is 1, expected a text (key plugins.options.Acme.apiUrl, {place}); write it in quotes: "1"',
        ),
        ("retry = 3", "retry is 3, expected a table"),
        ('either = "x"', "either is 'x', expected a whole number or a list"),
        ("steps = [{depth = 1}, 3]", "item 1 of steps is 3, expected a table"),
        ('names = ["a", "b", "c", "d"]', "names is wrong: at most three names"),
        ("root = 3", "root is 3, expected a path"),
        ("names = {a = 1}", "names is a table, expected a list"),
    ],
    ids=lambda text: text if "(" not in text else "",
)
def test_what_does_not_fit_is_an_error_like_the_kernels_own(tmp_path: Path, table: str, words: str) -> None:
    """Key, value, place, owner, what was expected and what to do are in the text."""
    loaded = _load(tmp_path, table)
    place = "set in settings.toml:2, plugin 'acme' of atlas-acme 1.0"
    with pytest.raises(SettingsError) as caught:
        _validate(loaded)
    assert words.replace("{place}", place) in str(caught.value)
    assert place in str(caught.value)
    assert caught.value.source == "settings.toml:2"


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """Unknown keys, true for a number, and what pydantic finds stand in one error, each key once."""
    with pytest.raises(SettingsError, match="3 settings are wrong") as caught:
        _validate(_load(tmp_path, "zzz = 1\nn = true\napiUrl = 3"))
    assert [line.split()[1] for line in str(caught.value).splitlines()[1:]] == ["unknown", "n", "apiUrl"]


def test_an_owner_without_options_takes_no_key(tmp_path: Path) -> None:
    """There are no keys to choose from, and the text does not pretend so."""
    with pytest.raises(SettingsError, match=r"unknown key 'zzz' \(.*\); remove it, for its owner takes no options"):
        _validate(_load(tmp_path, "zzz = 1"), NoOptions)


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    """Neither a secret field's value nor one under a secret-looking key appears. (case 112)"""

    class Model(BaseModel):
        api_key: int = 0
        hidden: SecretStr = SecretStr("")
        nested: dict[str, int] = {}

    table = 'api_key = "TESTSECRET"\nhidden = 5309\nnested = {password = "TESTSECRET", url = "https://u:TESTSECRET@h"}'
    with pytest.raises(SettingsError, match="4 settings") as caught:
        _validate(_load(tmp_path, table), Model)
    assert "TESTSECRET" not in str(caught.value)
    assert "5309" not in str(caught.value)
    assert "***" in str(caught.value)
    assert caught.value.__cause__ is None


def test_only_a_model_that_says_so_takes_any_key(tmp_path: Path) -> None:
    """`extra="allow"` is respected at the top and within; anything else forbids."""

    class Closed(BaseModel):
        model_config = ConfigDict(extra="ignore")
        inner: _Open = _Open()

    assert _validate(_load(tmp_path, "any = 1"), _Open).model_extra == {"any": 1}
    assert _validate(_load(tmp_path, "inner = {any = 1}"), Closed).inner.model_extra == {"any": 1}
    with pytest.raises(SettingsError, match="unknown key 'any'"):
        _validate(_load(tmp_path, "any = 1"), Closed)


def test_a_missing_key_names_the_table(tmp_path: Path) -> None:
    """A required key that is missing is told with the place of the table it belongs into."""

    class Model(BaseModel):
        needed: int

    class Outer(BaseModel):
        inner: Model

    with pytest.raises(SettingsError, match=r"'needed' is missing \(key plugins\.options\.Acme\.needed, .*toml:1"):
        _validate(_load(tmp_path, ""), Model)
    with pytest.raises(SettingsError, match=r"Acme\.inner\.needed, set in settings\.toml:2"):
        _validate(_load(tmp_path, "inner = {}"), Outer)


def test_a_variables_broken_table_is_an_error(tmp_path: Path) -> None:
    """Text that begins a table or list and is no valid TOML is told with the variable, without the text."""
    with pytest.raises(
        SettingsError, match="variable ATLAS_PLUGINS__OPTIONS__ACME__RETRY can't be read: expected"
    ) as caught:
        _validate(_load(tmp_path, "", RETRY="{depth = TESTSECRET"))
    assert "TESTSECRET" not in str(caught.value)
    assert "plugin 'acme'" in str(caught.value)


def test_a_variables_unknown_key_is_an_error_of_its_owner(tmp_path: Path) -> None:
    """A misspelt variable of a plugin's table is found when the owner's model judges it. (case 108)"""
    with pytest.raises(SettingsError, match=r"unknown key 'apirul'.*did you mean 'apiUrl'") as caught:
        _validate(_load(tmp_path, "", APIRUL="x"))
    assert caught.value.source == "variable ATLAS_PLUGINS__OPTIONS__ACME__APIRUL"


def test_a_model_whose_code_fails_is_its_owners_fault(tmp_path: Path) -> None:
    """An exception of a validator that is no finding names model and owner."""

    class Model(BaseModel):
        n: int = 0

        @field_validator("n")
        @classmethod
        def _fail(cls, _n: int) -> int:
            raise KeyError("x")

    with pytest.raises(SettingsError, match=r"failed with KeyError.*plugin 'acme'") as caught:
        _validate(_load(tmp_path, "n = 1"), Model)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_assertion_is_a_finding(tmp_path: Path) -> None:
    """A validator may use `assert`."""

    class Model(BaseModel):
        n: int = 0

        @field_validator("n")
        @classmethod
        def _even(cls, n: int) -> int:
            assert n % 2 == 0, "n must be even"
            return n

    with pytest.raises(SettingsError, match="n is wrong: n must be even"):
        _validate(_load(tmp_path, "n = 1"), Model)


def test_a_programs_own_table_needs_no_file() -> None:
    """Without loaded settings the key alone is named; Python values pass as they are."""
    table = {"root": Path("/x"), "n": 3}
    assert validate_owned(_Options, table, key="options", loaded=None, owner="this program").root == Path("/x")
    with pytest.raises(SettingsError, match=r"unknown key 'm' \(key options\.m, this program\)") as caught:
        validate_owned(_Options, {"m": 1}, key="options", loaded=None, owner="this program")
    assert caught.value.source is None


def test_a_table_that_nobody_wrote_is_the_owners_defaults(tmp_path: Path) -> None:
    """A plugin without a table in the settings gets its model's defaults, or is told what is missing."""
    loaded = _load(tmp_path, "")

    class Model(BaseModel):
        needed: int

    key = 'plugins.options."no.such"'
    assert validate_owned(_Options, {}, key=key, loaded=loaded, owner="x") == _Options.model_validate({})
    with pytest.raises(SettingsError, match=r"'needed' is missing \(key plugins\.options\.\"no\.such\"\.needed"):
        validate_owned(Model, {}, key=key, loaded=loaded, owner="x")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('mode = "slw"', "mode is 'slw', expected 'fast' or 'slow'"),
        ("ratio = inf", "ratio is inf, expected a finite number"),
        ("ratio = 2", "ratio is 2, expected at most 1"),
        ('code = "a"', "code is 'a', expected"),
        ("when = 3.5", "when is 3.5, expected a date"),
    ],
)
def test_other_findings_of_pydantic_read_as_well(tmp_path: Path, table: str, words: str) -> None:
    """Choices, bounds, lengths and dates say what was expected."""

    class Model(BaseModel):
        mode: Literal["fast", "slow"] = "fast"
        ratio: float = Field(0.5, le=1, allow_inf_nan=False)
        code: str = Field("abc", min_length=3)
        when: dt.date | None = None

    with pytest.raises(SettingsError) as caught:
        _validate(_load(tmp_path, table), Model)
    assert words in str(caught.value)


def test_a_connections_and_an_executors_tables_are_validated_alike(tmp_path: Path) -> None:
    """What is left of a connection or an executor's table goes through the same door."""
    (tmp_path / "settings.toml").write_text(
        "[default.ai.connections.c]\nbackend = 'b'\ntimeout = 1\n"
        "[default.ai.agents.profiles.connections.p]\nexecutor = { name = 'e', workers = 1 }\n"
    )
    environ = {
        "ATLAS_AI__CONNECTIONS__C__TIMEOUT": "2.5",
        "ATLAS_AI__AGENTS__PROFILES__CONNECTIONS__P__EXECUTOR__WORKERS": "4",
    }
    loaded = load_settings(folder=tmp_path, environ=environ)

    class Provider(BaseModel):
        timeout: float

    class Executor(BaseModel):
        workers: int

    connection = loaded.connection("c")[1]
    assert validate_owned(
        Provider, connection.options, key="ai.connections.c", loaded=loaded, owner="x"
    ).timeout == pytest.approx(2.5)
    choice = loaded.profile("p")[1].executor
    key = "ai.agents.profiles.connections.p.executor"
    assert validate_owned(Executor, choice.options, key=key, loaded=loaded, owner="x").workers == 4
