"""What pyproject.toml cannot say: a wheel has a ``py.typed``, the examples, and a README whose links lead somewhere.

The examples (programs, spaces, plug-ins) are folders of the repository; a wheel has them in ``looptune/data``, from
where ``looptune examples`` copies them.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
EXAMPLES = ("polybench", "pragmas", "examples", "gatlas")
_LINK = re.compile(r"(!?)(\[(?:[^\]\[]|\[[^\]]*\])*\])\((?!https?://|#|mailto:)([^)\s]+)\)")


def example_files() -> list[Path]:
    """The files of EXAMPLES, relative to the repository, without what Python compiles and what looptune writes."""
    found = (path for folder in EXAMPLES for path in (ROOT / folder).rglob("*") if path.is_file())
    relative = (path.relative_to(ROOT) for path in found)
    hidden = ("__pycache__", ".looptune")
    return sorted(p for p in relative if not any(part in hidden or part.endswith(".egg-info") for part in p.parts))


class BuildWhole(build_py):
    """The additions are made where the package is put together; an editable install is the repository itself."""

    @property
    def additions(self) -> list[Path]:
        package = Path(self.build_lib) / "looptune"
        return [package / "py.typed", *(package / "data" / path for path in example_files())]

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        marker, *copies = self.additions
        marker.touch()
        for path, copy in zip(example_files(), copies, strict=True):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, copy)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        made = [] if self.editable_mode else list(map(str, self.additions))
        return [*super().get_outputs(include_bytecode), *made]


def absolute_links(text: str, repository: str) -> str:
    """The README for a page outside of the repository: a relative link leads to the file in ``repository``.

    Pictures need the file itself, other links its page. Without a repository the text stays as it is.
    """
    if not repository:
        return text
    return _LINK.sub(lambda m: f"{m[1]}{m[2]}({repository}/{'raw' if m[1] else 'blob'}/main/{m[3]})", text)


def repository() -> str:
    """The address of the repository, which pyproject.toml has among the URLs."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    return str(urls.get("Repository", "")).rstrip("/")


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildWhole},
        long_description=absolute_links((ROOT / "README.md").read_text(), repository()),
        long_description_content_type="text/markdown",
    )
