"""The settings that the kernel knows, as frozen pydantic models.

Every key of the kernel is listed here and an unknown one is refused. What belongs to a plugin, a provider, an
executor or an agent type is kept as it is, for its owner to validate (`atlas_core.settings.owned`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    model_validator,
)
from pydantic_core import PydanticCustomError

from atlas_core.names import same_name
from atlas_core.settings.frozen import FrozenDict, freeze, thaw
from atlas_core.settings.secrets import literal_secrets, masked

__all__ = [
    "AISettings",
    "AgentProfileSettings",
    "AgentsSettings",
    "AtlasSettings",
    "ConnectionSettings",
    "ExecutorChoice",
    "PermissionsSettings",
    "PluginsSettings",
    "Prices",
    "ProfilePlugins",
    "ProfilesSettings",
]


def _no_limit(value: object) -> object:
    # TOML has no null; its `inf` is how a file takes a limit away.
    return None if isinstance(value, float) and value == math.inf else value


def _one_or_many(value: object) -> object:
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, list | set | frozenset) else value
    if "," in value:
        raise ValueError('a single text is one name and holds no comma; write a list: ["a", "b"]')
    return (value,)


def _no_blank(values: tuple[str, ...]) -> tuple[str, ...]:
    if any(not value.strip() for value in values):
        raise ValueError("an empty text is no name")
    return values


def _named(value: object) -> object:
    """Turn `"process"` and `{"name": "process", "workers": 2}` into an `ExecutorChoice`."""
    if isinstance(value, str):
        return ExecutorChoice(name=value)
    if isinstance(value, Mapping):
        if "name" not in value:
            raise ValueError('an executor\'s table needs a name: { name = "process", ... }')
        return ExecutorChoice(name=value["name"], options={k: v for k, v in value.items() if k != "name"})
    return value


_Text = Annotated[str, Strict()]
_Flag = Annotated[bool, Strict()]
_Count = Annotated[int, Strict()]
_Seconds = Annotated[Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)] | None, BeforeValidator(_no_limit)]
_Price = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
_Names = Annotated[tuple[_Text, ...], BeforeValidator(_one_or_many), AfterValidator(_no_blank)]
_Table = Annotated[Mapping[str, Any], AfterValidator(freeze), PlainSerializer(thaw)]


class _Frozen(BaseModel):
    # Values stay out of pydantic's own error texts, which know nothing of secrets.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            hidden = value if isinstance(value, BaseModel) else _masked_models(value, name or "")
            yield name, hidden


def _masked_models(value: object, key: str) -> object:
    if isinstance(value, Mapping) and any(isinstance(item, BaseModel) for item in value.values()):
        return dict(value)
    return masked(value, key)


class PluginsSettings(_Frozen):
    """`[plugins]`: which plugins are used, and their own options.

    Attributes:
        enabled: Names of plugins, or `name@distribution` where two distributions offer one name.
        options: For each plugin its own table, which its own model validates.
        prefix: For each plugin a text that is put before the names of its tools.
    """

    enabled: _Names = ()
    options: Annotated[Mapping[str, _Table], AfterValidator(freeze)] = Field(default_factory=FrozenDict)
    prefix: Annotated[Mapping[str, _Text], AfterValidator(freeze)] = Field(default_factory=FrozenDict)


class Prices(_Frozen):
    """What a connection's tokens cost, each per million tokens, in any one currency.

    Attributes:
        input: Tokens of input that no cache held.
        cached_input: Tokens of input that the provider's cache held; None for the price of input.
        output: Tokens of output, reasoning included.
    """

    input: _Price = 0.0
    cached_input: _Price | None = None
    output: _Price = 0.0


class ConnectionSettings(_Frozen):
    """One table of `[ai.connections]`: a model behind a provider.

    Keys other than these belong to the provider and are reached through `options`. A literal secret is refused:
    a file names the variable that holds it, through `api_key_env` or what else the provider offers.

    Attributes:
        backend: The provider's name.
        model: The model's name, as the provider knows it.
        max_output_tokens: Upper bound of one answer, at least 1; None for the provider's own.
        fallback: Connections to turn to, in this order, where this one's server fails before anything was shown.
        requests_per_minute: Requests that are sent in a minute at the most, over all runs; None for no limit.
        prices: What its tokens cost; None where nothing is known, and then `max_cost` can't be kept.
    """

    model_config = ConfigDict(extra="allow")

    backend: _Text
    model: _Text = ""
    max_output_tokens: Annotated[_Count, Field(ge=1)] | None = None
    fallback: _Names = ()
    requests_per_minute: Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)] | None = None
    prices: Prices | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_literal_secrets(cls, data: object) -> object:
        if isinstance(data, Mapping):
            paths = list(literal_secrets(data))
            if paths:
                names = ", ".join(repr(".".join(map(str, path))) for path in paths)
                text = f"{names}: a literal secret; name the variable that holds it, through api_key_env"
                raise PydanticCustomError("literal_secret", "{text}", {"text": text, "paths": paths})
        return data

    @property
    def options(self) -> dict[str, Any]:
        """The provider's own keys, as a fresh plain dict."""
        table: dict[str, Any] = thaw(self.__pydantic_extra__ or {})
        return table

    def model_post_init(self, _context: object) -> None:
        """Freeze the provider's own keys too."""
        if self.__pydantic_extra__:
            object.__setattr__(self, "__pydantic_extra__", freeze(self.__pydantic_extra__))


class PermissionsSettings(_Frozen):
    """What a profile may do with its tools; it only narrows what `tools` offers.

    Attributes:
        allow: Names or patterns of tools that run; None means all that are offered.
        ask: Names or patterns that run only after a person agreed.
        deny: Names or patterns that never run; wins over `ask`, which wins over `allow`.
    """

    allow: _Names | None = None
    ask: _Names = ()
    deny: _Names = ()


class ProfilePlugins(_Frozen):
    """What a profile changes in the list of enabled plugins.

    Attributes:
        enable: Plugins that this profile uses besides those enabled for all.
        disable: Plugins that this profile does without.
    """

    enable: _Names = ()
    disable: _Names = ()

    @model_validator(mode="after")
    def _one_or_the_other(self) -> ProfilePlugins:
        both = {same_name(name) for name in self.enable} & {same_name(name) for name in self.disable}
        if both:
            raise ValueError(f"{min(both)!r} is both in `enable` and in `disable`")
        return self


class ExecutorChoice(_Frozen):
    """An executor by name, and the table that belongs to it.

    Attributes:
        name: The executor's name.
        options: The table's other keys, which the executor's own model validates.
    """

    name: Annotated[_Text, Field(min_length=1)]
    options: _Table = Field(default_factory=FrozenDict)


class AgentProfileSettings(_Frozen):
    """One table of `[ai.agents.profiles.connections]`: an agent as data.

    Attributes:
        name: The agent's name; the key in the file if left out.
        description: What the agent is for, in a sentence.
        type: The agent type's name.
        system_prompt: The system prompt itself.
        system_prompt_file: A text file that holds it, relative to the settings file's folder. Only one of the two.
        connection_name: The connection's name.
        executor: The executor's name, or a table with `name` and the executor's own keys.
        max_iterations: Model requests of one run, at least 1.
        max_execution_time_seconds: Wall time of one run; None (in a file `inf`) for no limit.
        max_tool_calls: Tool calls of one run, at least 0; None for no limit.
        max_tokens: Tokens of one run, input and output, at least 1; None for no limit.
        max_cost: Cost of one run, in the currency of the connection's `prices`; None for no limit.
        tool_calls: How the model is offered tools: `native`, `text` (in the prompt, for models that have no native
            calls), or `auto`, which is native where the model can.
        tools: Names or patterns (`*`, `?`, `[abc]`) of the tools on offer.
        permissions: What narrows the tools further; None for no narrowing.
        plugins: What the profile changes in the list of enabled plugins.
        options: The agent type's own table, which its own model validates.
        tool_timeout_seconds: Wall time of one tool call; None for the run's limit alone.
    """

    name: _Text = ""
    description: _Text = ""
    type: Annotated[_Text, Field(min_length=1)] = "react"
    system_prompt: _Text | None = None
    system_prompt_file: _Text | None = None
    connection_name: _Text = ""
    executor: Annotated[ExecutorChoice, BeforeValidator(_named)] = ExecutorChoice(name="parallel")
    max_iterations: Annotated[_Count, Field(ge=1)] = 10
    max_execution_time_seconds: _Seconds = 60
    max_tool_calls: Annotated[_Count, Field(ge=0)] | None = None
    max_tokens: Annotated[_Count, Field(ge=1)] | None = None
    max_cost: Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)] | None = None
    tool_calls: Literal["auto", "native", "text"] = "auto"
    tools: _Names = ()
    permissions: PermissionsSettings | None = None
    plugins: ProfilePlugins = ProfilePlugins()
    options: _Table = Field(default_factory=FrozenDict)
    tool_timeout_seconds: _Seconds = None

    if TYPE_CHECKING:
        # What may be given is wider than what is kept, which pydantic's field types can't say.
        def __init__(
            self,
            *,
            name: str = "",
            description: str = "",
            type: str = "react",
            system_prompt: str | None = None,
            system_prompt_file: str | None = None,
            connection_name: str = "",
            executor: str | Mapping[str, object] | ExecutorChoice = "parallel",
            max_iterations: int = 10,
            max_execution_time_seconds: float | None = 60,
            max_tool_calls: int | None = None,
            max_tokens: int | None = None,
            max_cost: float | None = None,
            tool_calls: Literal["auto", "native", "text"] = "auto",
            tools: str | Sequence[str] = (),
            permissions: PermissionsSettings | Mapping[str, object] | None = None,
            plugins: ProfilePlugins | Mapping[str, object] = ...,
            options: Mapping[str, object] = ...,
            tool_timeout_seconds: float | None = None,
        ) -> None: ...


class ProfilesSettings(_Frozen):
    """`[ai.agents.profiles]`.

    Attributes:
        connections: The agent profiles by name. (The word is part of the file format.)
    """

    connections: Annotated[Mapping[str, AgentProfileSettings], AfterValidator(FrozenDict)] = Field(
        default_factory=FrozenDict
    )


class AgentsSettings(_Frozen):
    """`[ai.agents]`.

    Attributes:
        enabled: Whether agents may run at all.
        default_profile: The profile that is meant where none is named.
        profiles: The profiles.
    """

    enabled: _Flag = True
    default_profile: _Text = ""
    profiles: ProfilesSettings = ProfilesSettings()


class AISettings(_Frozen):
    """`[ai]`.

    Attributes:
        connections: The connections by name.
        agents: The agents.
    """

    connections: Annotated[Mapping[str, ConnectionSettings], AfterValidator(FrozenDict)] = Field(
        default_factory=FrozenDict
    )
    agents: AgentsSettings = AgentsSettings()


class AtlasSettings(_Frozen):
    """All settings of one environment.

    Attributes:
        plugins: Which plugins are used.
        ai: Connections and agents.
    """

    plugins: PluginsSettings = PluginsSettings()
    ai: AISettings = AISettings()
