"""`atlas connections`: which models the settings name, and whether one answers."""

import dataclasses
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_core.cli.options import EnvOption, JsonOption, SettingsOption
from atlas_core.cli.output import fail, say, say_json, say_table, warn
from atlas_core.cli.status import ExitStatus
from atlas_core.errors import AtlasError, ProviderError, SettingsError
from atlas_core.names import did_you_mean

if TYPE_CHECKING:
    from atlas_core.catalog import Catalog
    from atlas_core.interfaces.llm import ConnectionReport
    from atlas_core.kernel import Kernel
    from atlas_core.settings.loaded import LoadedSettings
    from atlas_core.settings.models import ConnectionSettings

__all__ = ["app"]

app = typer.Typer(help="List connections and look whether one answers.", no_args_is_help=True, rich_markup_mode=None)

DEFAULT_TIMEOUT_S = 30.0
MAX_TIMEOUT_S = 3_600.0
MAX_MODELS = 20
"""Names of models that are shown; --json has them all."""


@app.command("list")
def list_connections(*, as_json: JsonOption = False, settings: SettingsOption = None, env: EnvOption = None) -> int:
    """List the connections of the settings; no plugin is imported and nothing is sent.

    KEY tells whether the variables that a connection names are set. A provider may know others by itself, and
    `atlas connections check NAME` uses them.
    """
    from atlas_core.settings.loader import load_settings

    loaded = load_settings(settings, env=env)
    for text in loaded.warnings:
        warn(text)
    users, problems = _users(loaded)
    for text in problems:
        warn(text)
    connections = loaded.settings.ai.connections
    rows = [_facts(loaded, name, table, users.get(name, [])) for name, table in connections.items()]
    if as_json:
        say_json(rows)
    else:
        head = ("NAME", "BACKEND", "MODEL", "KEY", "FALLBACK", "USED BY")
        say_table(head, [_row(name, table, users.get(name, [])) for name, table in connections.items()])
    return ExitStatus.OK


def _users(loaded: "LoadedSettings") -> tuple[dict[str, list[str]], list[str]]:
    """Return the profiles that use each connection, itself or as a fallback, and what is wrong with their choice."""
    from atlas_core.llm.chain import ConnectionChain

    users: dict[str, list[str]] = {}
    problems: list[str] = []
    for profile in loaded.settings.ai.agents.profiles.connections:
        chain = ConnectionChain.of_profile(loaded, *loaded.profile(profile))
        problems += [f"profile {profile!r}: {problem}" for problem in chain.problems]
        for name in chain.tables:
            users.setdefault(name, []).append(profile)
    return users, problems


def _facts(loaded: "LoadedSettings", name: str, table: "ConnectionSettings", users: list[str]) -> dict[str, object]:
    from atlas_core.llm.chain import variables_of

    return {
        "name": name,
        "backend": table.backend,
        "model": table.model,
        "fallback": list(table.fallback),
        "requests_per_minute": table.requests_per_minute,
        "prices": table.prices.model_dump() if table.prices is not None else None,
        "variables": variables_of(table.options),
        "profiles": users,
        "origin": loaded.origin_of(("ai", "connections", name, "backend")),
    }


def _row(name: str, table: "ConnectionSettings", users: list[str]) -> tuple[str, ...]:
    from atlas_core.llm.chain import variables_of

    keys = [f"{variable} {_set(known)}" for variable, known in variables_of(table.options).items()]
    return (
        name,
        table.backend,
        table.model or "-",
        ", ".join(keys) or "none named",
        ", ".join(table.fallback) or "-",
        ", ".join(users) or "no profile",
    )


def _set(known: bool) -> str:
    return "set" if known else "NOT set"


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The connection's name.")],
    *,
    as_json: JsonOption = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", help="Seconds after which no answer is a failure.")
    ] = DEFAULT_TIMEOUT_S,
    settings: SettingsOption = None,
    env: EnvOption = None,
) -> int:
    """Look whether a connection answers, which models it has, and whether it does tools and streaming.

    Small requests are sent, as its provider sees fit; of a connection with fallbacks only itself is asked.

    Exit status: 0 it answers, 1 it does not, 2 the settings or a plugin are wrong, 130 interrupted.
    """
    if not 0 < timeout <= MAX_TIMEOUT_S:  # also refuses nan
        raise typer.BadParameter(f"expected more than 0 and at most {MAX_TIMEOUT_S:g} seconds", param_hint="--timeout")
    from atlas_core.cli.running import Interruptible
    from atlas_core.cli.sessions import make_kernel, tell_warnings

    kernel = make_kernel(settings, env)
    found = _Found(kernel, name)
    tell_warnings(kernel)
    began = time.monotonic()
    with Interruptible() as loop:
        report = loop.run(lambda: _look(kernel, found, timeout))
    took_s = time.monotonic() - began
    if as_json:
        say_json(found.facts(report, took_s))
    else:
        found.draw(report, took_s)
    if not report.answers:
        fail(f"connection {found.name!r} does not answer: {found.reason(report)}")
    return ExitStatus.OK if report.answers else ExitStatus.FAILED


class _Found:
    """A connection with its model, made and not yet started."""

    def __init__(self, kernel: "Kernel", wanted: str) -> None:
        name, self.table = kernel.loaded.connection(wanted)
        catalog = _catalog(kernel, name, self.table.backend, _users(kernel.loaded)[0].get(name, []))
        self.llm, self.owner, self.name = kernel.llms.resolve(name, catalog=catalog)

    @property
    def provider(self) -> str:
        """The provider, and who supplied it."""
        return f"{self.table.backend} ({self.owner})"

    def reason(self, report: "ConnectionReport") -> str:
        """Return why it does not answer, and which model was probably meant."""
        texts = [report.detail or "its provider gives no reason"]
        if self.table.model and report.models and self.table.model not in report.models:
            hint = did_you_mean(self.table.model, report.models, what="it has")
            texts.append(f"the server names no model {self.table.model!r}, {hint}")
        return "; ".join(texts)

    def facts(self, report: "ConnectionReport", took_s: float) -> dict[str, object]:
        """Return everything for a program."""
        from atlas_core.llm.chain import variables_of
        from atlas_core.settings.secrets import masked

        return {
            "name": self.name,
            "backend": self.table.backend,
            "plugin": self.owner.plugin,
            "distribution": self.owner.distribution,
            "model": self.table.model,
            "fallback": list(self.table.fallback),
            "variables": variables_of(self.table.options),
            **dataclasses.asdict(report),
            "detail": masked(report.detail),
            "duration_s": round(took_s, 6),
        }

    def draw(self, report: "ConnectionReport", took_s: float) -> None:
        """Tell a person."""
        from atlas_core.llm.chain import variables_of
        from atlas_core.settings.secrets import masked

        say(f"connection {self.name} {'answers' if report.answers else 'does not answer'} ({took_s:.1f} s)")
        say(f"  provider   {self.provider}")
        say(f"  model      {self.table.model or '-'}")
        for variable, known in variables_of(self.table.options).items():
            say(f"  variable   {variable} is {_set(known)}")
        if report.answers and report.detail:
            say(f"  found      {masked(report.detail)}")
        say(f"  models     {_some(report.models) or 'none named'}")
        say(f"  tools      {_tried(report.tools)}")
        say(f"  streaming  {_tried(report.streaming)}")
        if self.table.fallback:
            say(f"  fallback   {', '.join(self.table.fallback)} (not asked)")


def _tried(found: bool | None) -> str:
    return "not tried" if found is None else "yes" if found else "no"


def _some(models: Iterable[str]) -> str:
    names = list(models)
    more = [f"and {len(names) - MAX_MODELS} more"] if len(names) > MAX_MODELS else []
    return ", ".join([*names[:MAX_MODELS], *more])


def _catalog(kernel: "Kernel", name: str, backend: str, profiles: list[str]) -> "Catalog":
    """Return what the plugins of one of the profiles offer, or those of the environment, where one offers the backend.

    Raises:
        AtlasError: Why none does.
    """
    from atlas_core.settings.toml_lines import dotted

    key = dotted(("ai", "connections", name, "backend"))
    first: AtlasError | None = None
    for profile in (*profiles, None):
        try:
            catalog = kernel.catalog(profile)
            catalog.find("llm", backend)
        except AtlasError as exc:
            first = first or exc
            if isinstance(first, SettingsError) and first.key is None:
                first = SettingsError(first.problem, key=key, source=kernel.loaded.origin(key), remedy=first.remedy)
        else:
            return catalog
    assert first is not None  # noqa: S101  # the environment's plugins were asked at least
    raise first


async def _look(kernel: "Kernel", found: _Found, timeout_s: float) -> "ConnectionReport":
    """Have the provider look, in bounded time; what a provider's code raises says that the model can't be used.

    Raises:
        AtlasError: A setting or a plugin is wrong, which is no fault of the model.
    """
    import asyncio

    from atlas_core.interfaces.llm import ConnectionReport

    limit = asyncio.timeout(timeout_s)
    try:
        async with kernel, limit:
            report: object = await found.llm.check()
    except ProviderError as exc:
        return ConnectionReport(answers=False, detail=str(exc))
    except AtlasError:
        raise
    except Exception as exc:  # noqa: BLE001  # a plugin's code may raise anything
        if limit.expired():
            return ConnectionReport(answers=False, detail=f"nothing came within {timeout_s:g} s")
        return ConnectionReport(answers=False, detail=f"{found.provider} failed: {type(exc).__name__}: {exc}")
    if isinstance(report, ConnectionReport):
        return report
    kind = type(report).__name__
    return ConnectionReport(answers=False, detail=f"{found.provider} reported a {kind}, expected a ConnectionReport")
