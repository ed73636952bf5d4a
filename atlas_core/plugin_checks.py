"""What the plugin host demands of a plugin: of its hooks before any is called, and of the objects they return."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from atlas_core import hookspecs
from atlas_core.errors import PluginError, PluginHookError, PluginResultError
from atlas_core.names import nearest, same_name

if TYPE_CHECKING:
    from atlas_core.catalog import Offer
    from atlas_core.metadata import InstalledPlugin
    from atlas_core.owner import Owner

__all__ = ["Blame", "Hook", "answers_of", "check_observer", "check_options_model", "check_spec", "find_hooks", "unique"]

HOOKS: Mapping[str, tuple[str, ...]] = {
    name: tuple(inspect.signature(getattr(hookspecs, name)).parameters) for name in hookspecs.__all__
}
"""Each hook's name and the arguments it passes."""

_E = TypeVar("_E", bound=PluginError)
_S = TypeVar("_S")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Blame:
    """Builds the errors of one plugin, all facts about it included."""

    owner: Owner
    plugin: InstalledPlugin | None = None

    def error(
        self, kind: type[_E], problem: str, *, remedy: str | None = None, cause: BaseException | None = None
    ) -> _E:
        """Return an error about the plugin; of a cause the text holds class and message, `.cause` the traceback."""
        return kind(
            f"{problem}: {describe(cause)}" if cause is not None else problem,
            plugin=self.owner.plugin,
            distribution=self.owner.distribution,
            version=self.owner.version,
            entry_point=self.plugin.entry_point if self.plugin is not None else "",
            owner=self._full_owner,
            remedy=remedy or self.way_out,
            cause="" if cause is None else "".join(traceback.format_exception(cause)),
        )

    def guard(
        self,
        call: Callable[[], _T],
        what: str,
        *,
        kind: type[PluginError] = PluginResultError,
        remedy: str | None = None,
        passing: type[Exception] | tuple[()] = (),
    ) -> _T:
        """Run code of the plugin, and turn whatever it raises into an error about the plugin.

        A failed `sys.exit` counts as well: somebody's plugin must not end its host. `KeyboardInterrupt` passes, as it
        is the operator's, and so do errors that were built here and those of class `passing`.

        Raises:
            PluginError: Of class `kind`; the code raised something.
        """
        try:
            return call()
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if isinstance(exc, passing) or (isinstance(exc, PluginError) and exc.owner == self._full_owner):
                raise
            raise self.error(kind, what, remedy=remedy, cause=exc) from exc

    @property
    def _full_owner(self) -> str:
        return f"{self.owner}, entry point {self.plugin.entry_point!r}" if self.plugin is not None else str(self.owner)

    @property
    def way_out(self) -> str:
        """What a user can do about a fault in somebody's plugin."""
        if self.plugin is None:
            return "correct the plugin"
        return (
            f"update {self.owner.distribution}, tell its author, or take {self.owner.plugin!r} out of plugins.enabled"
        )


def describe(exc: BaseException) -> str:
    """Return class and message of an exception in one line of at most 300 characters; never raises."""
    try:
        text = " ".join(str(exc).split())
    except Exception:  # noqa: BLE001  # a foreign exception's __str__ may be as broken as what raised it
        text = "(its text can't be read)"
    name = type(exc).__name__
    return f"{name}: {text[:300]}" if text else name


def name_of(value: object) -> str:
    """Return what a value is in a few words, without calling anything of it."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiouAEIOU" else f"a {kind}"


class Hook(NamedTuple):
    """One implementation of a hook: the hook's name, the function, and what its marker says."""

    name: str
    function: Callable[..., object]
    marks: Mapping[str, Any]


def find_hooks(plugin: object, marks_of: Callable[[object, str], Mapping[str, Any] | None], blame: Blame) -> list[Hook]:
    """Return a plugin's hook implementations, checked, in name order.

    Args:
        plugin: A module or an object.
        marks_of: Returns what the `hookimpl` marker noted on an attribute, or None.
        blame: Builds the errors.

    Raises:
        PluginHookError: A hook is misspelt, unmarked, a wrapper or an `async def`, its parameters are not those that
            the hook passes, or there is none.
    """
    hooks = []
    for name in sorted(dir(plugin)):
        marks = marks_of(plugin, name)
        if marks is not None:
            hooks.append(Hook(marks.get("specname") or name, getattr(plugin, name), marks))
        elif name.startswith("atlas_"):
            _refuse_unmarked(inspect.getattr_static(plugin, name, None), name, blame)
    if not hooks:
        raise blame.error(
            PluginHookError,
            f"{name_of(plugin)} implements no hook",
            remedy="mark one with @hookimpl: " + ", ".join(HOOKS),
        )
    # A hook that a later Atlas will know may be marked optional; it is left out here.
    known = [hook for hook in hooks if hook.name in HOOKS or not hook.marks.get("optionalhook")]
    for hook in known:
        _check_hook(hook, blame)
    return known


def _refuse_unmarked(value: object, name: str, blame: Blame) -> None:
    plain = inspect.isroutine(value) or isinstance(value, (staticmethod, classmethod))
    if not plain and (isinstance(value, type) or not callable(value)):
        return  # a module `atlas_x`, a constant, a class
    if name in HOOKS:
        remedy = "put @hookimpl above it" if plain else "make it a plain `def` with @hookimpl above it"
        raise blame.error(PluginHookError, f"{name} is not marked as a hook", remedy=remedy)
    raise _misspelt(name, blame)


def _misspelt(name: str, blame: Blame) -> PluginHookError:
    close = nearest(name, HOOKS, most=1)
    remedy = f"did you mean {close[0]!r}?" if close else "the hooks are " + ", ".join(HOOKS)
    return blame.error(
        PluginHookError, f"there is no hook {name!r}; names that begin with 'atlas_' are hooks", remedy=remedy
    )


def _check_hook(hook: Hook, blame: Blame) -> None:
    if hook.name not in HOOKS:
        raise _misspelt(hook.name, blame)
    if hook.marks.get("wrapper") or hook.marks.get("hookwrapper"):
        # Hooks are called one plugin at a time, so that an offer has one owner; a wrapper would never be called.
        raise blame.error(
            PluginHookError,
            f"hook {hook.name} is marked as a wrapper, which has nothing to wrap",
            remedy="drop the mark",
        )
    function = inspect.unwrap(hook.function)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise blame.error(
            PluginHookError,
            f"hook {hook.name} is an `async def`, which nobody would await",
            remedy="make it a plain `def`; what has to wait belongs in the offered object's start",
        )
    _check_parameters(hook, blame)


def _check_parameters(hook: Hook, blame: Blame) -> None:
    passed = HOOKS[hook.name]
    try:
        parameters = inspect.signature(hook.function).parameters.values()
    except (TypeError, ValueError) as exc:
        raise blame.error(PluginHookError, f"hook {hook.name} has no readable signature", cause=exc) from exc
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) and (p.default is p.empty or p.name in passed):
            problem = (
                f"hook {hook.name} takes {str(p).partition(':')[0]!r}, and hooks pass positional arguments by name"
            )
        elif p.name not in passed and p.default is p.empty:
            problem = f"hook {hook.name} takes {p.name!r}, which is not passed"
        else:
            continue
        expected = f"write `def {hook.name}({', '.join(passed)})`"
        raise blame.error(PluginHookError, problem, remedy=f"{expected} or leave arguments out" if passed else expected)


def answers_of(hook: str, answers: Iterable[object], blame: Blame) -> list[object]:
    """Return the objects that the implementations of a hook answered with, one list of all.

    Raises:
        PluginResultError: An answer is not an iterable of objects.
    """
    offered: list[object] = []
    for answer in answers:
        if inspect.iscoroutine(answer):
            answer.close()  # else Python warns of it, at some other time
        if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
            raise blame.error(
                PluginResultError,
                f"hook {hook} returned {name_of(answer)}, expected an iterable of what it offers",
                remedy="return a list, an empty one for nothing",
            )
        offered.extend(answer)
    return offered


def check_spec(hook: str, value: object, expected: type[_S], blame: Blame) -> _S:
    """Return an offered spec whose fields are what its class says.

    Raises:
        PluginResultError: It is no such spec, or a field is wrong.
    """
    if not isinstance(value, expected):
        raise blame.error(PluginResultError, f"hook {hook} offers {name_of(value)}, expected an {expected.__name__}")
    spec: Any = value
    what = f"hook {hook} offers an {expected.__name__} whose"
    if not isinstance(spec.name, str) or not spec.name.strip() or spec.name != spec.name.strip():
        raise blame.error(PluginResultError, f"{what} name is {spec.name!r}, expected a non-empty text")
    what = f"{what} name is {spec.name!r} and whose"
    if not callable(spec.factory):
        raise blame.error(PluginResultError, f"{what} factory is {name_of(spec.factory)}, expected a callable")
    if inspect.iscoroutinefunction(spec.factory):
        raise blame.error(
            PluginResultError,
            f"{what} factory is an `async def`",
            remedy="return the object at once; what has to wait belongs in its start",
        )
    if spec.options is not None:
        check_options_model(spec.options, f"{what} options", blame)
    if not isinstance(spec.description, str):
        raise blame.error(PluginResultError, f"{what} description is {name_of(spec.description)}, expected a text")
    return value


def check_options_model(model: object, what: str, blame: Blame) -> None:
    """Refuse what is no pydantic model class.

    Raises:
        PluginResultError: It is something else.
    """
    from pydantic import BaseModel  # only plugins that have options need it

    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise blame.error(PluginResultError, f"{what} is {name_of(model)}, expected a pydantic model class")


def check_observer(hook: str, value: object, blame: Blame) -> None:
    """Refuse what can't be told of events.

    Raises:
        PluginResultError: It is a class, has no `on_event`, or one that would have to be awaited.
    """
    on_event = getattr(value, "on_event", None)
    if isinstance(value, type) or not callable(on_event):
        raise blame.error(
            PluginResultError, f"hook {hook} offers {name_of(value)}, expected an object with on_event(event)"
        )
    if inspect.iscoroutinefunction(on_event):
        raise blame.error(
            PluginResultError,
            f"hook {hook} offers {name_of(value)} whose on_event is an `async def`",
            remedy="make it a plain `def` that returns at once",
        )


def unique(hook: str, offers: Iterable[Offer[_S]], blame: Blame) -> tuple[Offer[_S], ...]:
    """Return offers in name order.

    Raises:
        PluginResultError: The plugin offers one name twice.
    """
    found: dict[str, Offer[_S]] = {}
    for offer in offers:
        if same_name(offer.name) in found:
            raise blame.error(PluginResultError, f"hook {hook} offers the name {offer.name!r} twice")
        found[same_name(offer.name)] = offer
    return tuple(found[key] for key in sorted(found))
