"""The system prompt of a profile, from the settings or from a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from atlas_core.errors import SettingsError

if TYPE_CHECKING:
    from atlas_core.settings.models import AgentProfileSettings

__all__ = ["read_system_prompt"]


def read_system_prompt(
    profile: AgentProfileSettings, base_dir: Path, *, key: str = "", source: str | None = None
) -> str | None:
    """Return the text of a profile's system prompt, or None if it has none. The file is read at each call.

    Args:
        profile: The profile.
        base_dir: The folder that `system_prompt_file` is relative to: the settings file's.
        key: The profile's dotted key, for error texts.
        source: Where `system_prompt_file` was set, for error texts.

    Raises:
        SettingsError: Both `system_prompt` and `system_prompt_file` are set, or the file can't be read as UTF-8.
    """
    if not profile.system_prompt_file:
        return profile.system_prompt
    full_key = f"{key}.system_prompt_file" if key else "system_prompt_file"
    if profile.system_prompt:
        raise SettingsError(
            f"profile {profile.name!r} sets both system_prompt and system_prompt_file",
            key=full_key,
            source=source,
            remedy='keep one; an empty text ("") takes the other one away',
        )
    path = base_dir / profile.system_prompt_file
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as exc:
        reason = (exc.strerror or str(exc)) if isinstance(exc, OSError) else "it is no text in UTF-8"
        raise SettingsError(
            f"system_prompt_file {profile.system_prompt_file!r} can't be read: {reason}: {str(path)!r}",
            key=full_key,
            source=source,
            remedy="name an existing text file, relative to the settings file's folder",
        ) from exc
