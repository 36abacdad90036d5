"""The error for what the stand-ins do not have."""

from __future__ import annotations

from typing import Final

ADVICE: Final = (
    "the reference runtime does not cover it; run these tests on the real package: "
    "pip install 'statek[dbzero]' and pytest --statek-backend=installed"
)


class NotCovered(ImportError):
    """Something of STATEK or dbzero that the reference runtime lacks."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {ADVICE}", name=what.partition(" ")[0])


class ModuleNotCovered(ModuleNotFoundError):
    """A whole module that the reference runtime lacks."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module}: {ADVICE}", name=module)
