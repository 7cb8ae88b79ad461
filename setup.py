"""What pyproject.toml cannot say: looptune is installed with a ``py.typed``, which its sources do not show."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildTyped(build_py):
    """The marker is made where the package is put together; an editable install, which is the sources, has none."""

    @property
    def marker(self) -> Path:
        return Path(self.build_lib) / "looptune" / "py.typed"

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.marker.touch()

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        made = [] if self.editable_mode else [str(self.marker)]
        return [*super().get_outputs(include_bytecode), *made]


setup(cmdclass={"build_py": BuildTyped})
