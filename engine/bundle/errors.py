"""What can go wrong between a bundle and an answer; each message can be shown on a page as it stands."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from engine.errors import SeqscopeError


class BundleError(SeqscopeError):
    """A file of a bundle (or of the dataset folder around it) is not what it should be.

    Attributes: bundle, the folder's name; file, the file's name; reason, words without either.
    """

    def __init__(self, bundle: str, file: str, reason: str) -> None:
        super().__init__(f"{bundle}/{file}: {reason}")
        self.bundle = bundle
        self.file = file
        self.reason = reason

    def __reduce__(self) -> tuple[type[BundleError], tuple[str, str, str]]:
        # Caches and process pools pickle exceptions; the default would call __init__ with the message alone.
        return BundleError, (self.bundle, self.file, self.reason)


class QuestionError(SeqscopeError):
    """The question cannot be answered as asked: unknown item, empty history, k < 1."""


class BusyError(SeqscopeError):
    """Other questions took all places for longer than one waits; no bundle is at fault."""


class CapabilityError(SeqscopeError):
    """The model cannot do this at all; the message is the bundle's own reason."""


@dataclass(frozen=True)
class Refusal:
    """A bundle that was not taken into the zoo: name of its folder, the file at fault, the reason in words."""

    name: str
    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}/{self.file}: {self.reason}"


def complaints(error: ValidationError) -> str:
    """Pydantic's findings in one line, the first three of them."""
    findings = []
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"])) or "the whole"
        findings.append(f"{place}: {detail['msg'].removeprefix('Value error, ')}"[:200])
    return "; ".join(findings[:3]) + (f"; and {len(findings) - 3} more" if len(findings) > 3 else "")
