"""Libraries of codelets, called from C, C++ and Fortran, found by pkg-config and CMake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import looptune
from tests.helpers.host_kernels import environment, write_kernels
from tests.helpers.paths import ROOT
from tests.helpers.whole_programs import kernels_of

SOURCE = """#pragma hmpp axpy codelet
void axpy(int n, double f, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += f * x[i]; }
#pragma hmpp prefix codelet
void prefix(int n, double *x) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }
"""
USER = """#include <stdio.h>
#include "own.h"
int main(void)
{
    double x[4] = {1, 2, 3, 4}, y[4] = {1, 1, 1, 1};
    const char *level = 0, *directives = 0;
    int status = axpy(4, 2.0, x, y);
    printf("%d %g %g\\n", status, y[0], y[3]);
    status = prefix(4, y);
    printf("%d %g %g\\n", status, y[0], y[3]);
    status = axpy(3, 2.0, y, y + 1);
    printf("%d %s\\n", status, axpy_message(status));
    status = axpy(-1, 2.0, x, y);
    printf("%d %s\\n", status, axpy_message(status));
    axpy_query(4, &level, &directives);
    printf("%s\\n", level);
    return 0;
}
"""
PRINTED = """0 3 9
0 3 24
5 arrays overlap, one of which is written
9 the sizes are not what its analysis assumes
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared and a static library, each in a directory of its own, and a program that uses them."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "own.c").write_text(SOURCE)
    (folder / "use.c").write_text(USER)
    for kind, file in (("shared", "libown.so"), ("static", "libown.a")):
        (folder / kind).mkdir()
        options = ("--arch", "sm_90", "--keep", f"generated_{kind}")
        made = looptune("cc", "own.c", "-O2", f"--{kind}", "-o", f"{kind}/{file}", *options, cwd=folder)
        assert (made.code, made.err) == (0, "")
    return folder


def run(command: list[str], folder: Path, **settings: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc -Wall -Wextra -std=c99 -pedantic", "g++ -Wall -Wextra -x c++"])
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_a_library_in_c_and_cxx(kind: str, compiler: str, libraries: Path) -> None:
    """Host pointers work without a GPU; what is wrong gives a status, and never ends the program."""
    config = {"PKG_CONFIG_PATH": str(libraries / kind)}
    if shutil.which("pkg-config"):
        flags = run(["pkg-config", "--cflags", "--libs", "own"], libraries, **config).split()
    else:
        flags = [f"-I{kind}", f"-L{kind}", "-lown", "-lpthread", "-ldl", "-lm", "-fopenmp"]
    program = f"use_{kind}"
    run([*compiler.split(), "use.c", *(["-x", "none"] if "++" in compiler else []), *flags, "-o", program], libraries)
    out = run([f"./{program}"], libraries, LD_LIBRARY_PATH=str(libraries / "shared"))
    assert out == f"{PRINTED}host\n"


def test_only_its_functions_are_visible(libraries: Path) -> None:
    """The runtime of a shared library is its own."""
    names = {
        line.split()[-1] for line in run(["nm", "-D", "--defined-only", "shared/libown.so"], libraries).splitlines()
    }
    functions = {f"{name}{end}" for name in ("axpy", "prefix") for end in ("", "_on_device", "_query", "_message")}
    assert names == functions


def test_a_library_on_a_device(libraries: Path, driver: Path) -> None:
    """The same program runs the kernels where there is a device, and the query names what would run."""
    write_kernels(kernels_of(libraries / "generated_shared"), libraries)
    flags = ["-Ishared", "-Lshared", "-lown"]
    run(["gcc", "use.c", *flags, "-o", "use_device"], libraries)
    env = environment(driver, libraries / "kernels.so")
    paths = f"{libraries / 'shared'}:{driver}"
    out = run(["./use_device"], libraries, **{**env, "LD_LIBRARY_PATH": paths})
    assert out == f"{PRINTED}default\n"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_a_library_with_cmake(kind: str, libraries: Path) -> None:
    """``find_package`` finds it, and its target brings what it needs."""
    project = libraries / f"cmake_{kind}"
    project.mkdir(exist_ok=True)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(use C)\nfind_package(own REQUIRED)\n"
        "add_executable(use ../use.c)\ntarget_link_libraries(use own::own)\n"
    )
    own = f"-Down_DIR={libraries / kind}"
    done = subprocess.run(["cmake", "-S", project, "-B", project / "build", own], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["cmake", "--build", project / "build"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run([str(project / "build" / "use")], libraries) == f"{PRINTED}host\n"


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="needs gfortran")
def test_a_library_from_fortran(libraries: Path) -> None:
    """Numbers are passed by value, arrays as they are."""
    (libraries / "use.f90").write_text("""program use
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function axpy(n, f, x, y) bind(c)
      import :: c_int, c_double
      integer(c_int), value :: n
      real(c_double), value :: f
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: y(*)
    end function
  end interface
  real(c_double) :: x(4) = [1, 2, 3, 4], y(4) = 1
  if (axpy(4, 2d0, x, y) /= 0) stop 1
  print '(4f5.1)', y
end program
""")
    run(["gfortran", "use.f90", "-Lshared", "-lown", "-o", "use_fortran"], libraries)
    out = run(["./use_fortran"], libraries, LD_LIBRARY_PATH=str(libraries / "shared"))
    assert out == "  3.0  5.0  7.0  9.0\n"


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_the_cmake_project_of_the_examples(tmp_path: Path) -> None:
    """It builds from its own directory, with the command that its comment gives, and runs."""
    project = tmp_path / "cmake"
    shutil.copytree(ROOT / "examples" / "cmake", project)
    looptune_here = f"-DLOOPTUNE={sys.executable};-m;looptune"
    run(["cmake", "-S", ".", "-B", "build", looptune_here, "-DLOOPTUNE_ARCH=none"], project)
    run(["cmake", "--build", "build"], project, PYTHONPATH=str(ROOT))
    assert run(["build/program", "40"], project) == "mean 7.9910 (host)\n"
