"""Files as users write them, and options of the compiler that decide what they mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import looptune
from tests.helpers.whole_programs import agrees, build

HERE = Path(__file__).parent / "programs"
STRICT = (
    "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wshadow", "-Wconversion", "-Wstrict-prototypes",
    "-Wmissing-prototypes", "-Wcast-qual", "-Wundef", "-Wredundant-decls", "-Wunused-macros", "-Wlong-long",
    "-Wdeclaration-after-statement", "-Wmisleading-indentation",
)  # fmt: skip
SCALE = "void scale(int n, double *x) {\n#pragma scop\n  for (int i = 0; i < n; i++) x[i] *= 2;\n#pragma endscop\n}\n"


def printed(folder: Path, program: str, **environment: str) -> str:
    """What a program prints, on both streams."""
    env = {**os.environ, **environment}
    done = subprocess.run([folder / program], env=env, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "options",
    [
        "-O0 -include pre.h -DM=9",
        *(
            pytest.param(o, marks=pytest.mark.wide)
            for o in ("-O2 -DF(x)=x*x -std=c99", "-DN=30 -DF(x)=0 -fopenmp", "-UN -DN=4 -UN -DF(i)=i -DK=3 -ansi")
        ),
    ],
)
def test_macros_are_those_of_the_compiler(options: str, tmp_path: Path) -> None:
    """Options define macros, and a file may define them anew; looptune reads the text that the compiler reads."""
    (tmp_path / "pre.h").write_text("#define F(x) ((x) * 3)\n#define N 20\n")
    shutil.copy(HERE / "options.c", tmp_path)
    given = options.split()
    made = looptune("cc", "options.c", "-w", *given, "--arch", "none", "-o", "own", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    subprocess.run(["gcc", "options.c", "-w", *given, "-o", "plain"], cwd=tmp_path, check=True)
    assert printed(tmp_path, "own") == printed(tmp_path, "plain")
    assert "f (options.c:25): calls on the host: 1" in printed(tmp_path, "own", LOOPTUNE_VERBOSE="1")


def test_names_of_every_kind(tmp_path: Path, driver: Path) -> None:
    """Names that generated files have too, arrays of small types, sizes in brackets that say nothing."""
    labels = [word for name in "abcdef" for word in ("--kernel", name)]
    program = build([HERE / "names.c"], tmp_path, driver, [], [*labels, "--kernel", "dot"])
    agrees(program)
    assert "the braces of f come from a macro" in program.said


@pytest.mark.parametrize(
    ("name", "ends", "mark"),
    [("./ä dir/../ä dir/a b.c", "\r\n", "\ufeff"), pytest.param("./app.c", "\n", "", marks=pytest.mark.wide)],
)
def test_files_of_every_kind(name: str, ends: str, mark: str, tmp_path: Path) -> None:
    """A path is as the user spells it; line ends, byte order marks and what strings contain stay as they are."""
    folder = (tmp_path / name).parent
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "all.h").write_text('#include "size.h"\nvoid step(int n, const double *a, double *b);\n')
    (folder / "sub" / "size.h").write_text("#define SIZE 9\n")
    text = (
        '#include "sub/all.h"\n#include <stdio.h>\n#pragma hmpp step codelet, &\n#pragma hmpp & args[b].io=inout\n'
        "void step(int n, const double *a, double *b)\n{\n    // größer\n    for (int i = 1; i < n; i++)\n"
        "        b[i] += a[i - 1] \\\n            * 2;\n}\nint main(void)\n{\n    double a[SIZE], b[SIZE];\n"
        "    for (int i = 0; i < SIZE; i++) a[i] = b[i] = i;\n#pragma hmpp step callsite\n    step(SIZE, a, b);\n"
        '    printf("%g %d %s %s\\n", b[3], __LINE__, __FILE__, "ü\u2028\u0085");\n    return 0;\n}\n'
    )
    (tmp_path / name).write_bytes((mark + text).replace("\n", ends).encode())
    subprocess.run(["gcc", name, "-o", "plain"], cwd=tmp_path, check=True)
    made = looptune("cc", name, "--arch", "none", "-o", "own", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert printed(tmp_path, "own") == printed(tmp_path, "plain")
    assert "calls on the host: 1" in printed(tmp_path, "own", LOOPTUNE_VERBOSE="1")


@pytest.mark.wide
def test_inputs_of_every_kind(tmp_path: Path) -> None:
    """Files that -x makes C, an archive that -l finds, and what compiles nothing: as gcc does it, and not silently."""
    main = "#include <stdio.h>\nvoid scale(int, double *);\nint main(void)\n{ double x[2] = {1, 2}; scale(2, x); "
    (tmp_path / "main.c").write_text(f'{main}printf("%g\\n", x[1]); return 0; }}\n')
    (tmp_path / "scale.txt").write_text(SCALE)
    (tmp_path / "scale.c").write_text(SCALE)
    for words in (["-x", "c", "scale.txt", "main.c"], ["main.c", "-xc", "scale.txt", "-x", "none", "-lm"]):
        made = looptune("cc", "-w", "--arch", "none", *words, "-o", "own", cwd=tmp_path)
        assert (made.code, made.err) == (0, "")
        assert "scale (scale.txt:3): calls on the host: 1" in printed(tmp_path, "own", LOOPTUNE_VERBOSE="1")
    assert looptune("cc", "-w", "--arch", "none", "-c", "scale.c", cwd=tmp_path).code == 0
    subprocess.run(["ar", "rcs", "libs.a", "scale.o"], cwd=tmp_path, check=True)
    made = looptune("cc", "-w", "--arch", "none", "main.c", "-L.", "-ls", "-o", "own", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert printed(tmp_path, "own") == "4\n"
    assert looptune("cc", "-w", "-fsyntax-only", "scale.c", cwd=tmp_path).code == 0
    made = looptune("cc", "-w", "-S", "scale.c", cwd=tmp_path)
    assert made.code == 0
    assert "-S shows the assembly of the files as they are" in made.err
    assert "scale:" in (tmp_path / "scale.s").read_text()


def test_lines_that_the_text_numbers(tmp_path: Path) -> None:
    """A text that a generator wrote keeps the numbers and the names that it gives to its lines."""
    (tmp_path / "a.c").write_text(
        '#include <stdio.h>\nstatic double a[9];\n#line 700 "gram.y"\nvoid f(int n)\n{\n#pragma scop\n'
        "    for (int i = 0; i < n; i++)\n        a[i] += __LINE__;\n#pragma endscop\n"
        '    printf("%d %s\\n", __LINE__, __FILE__);\n}\n#line 20\n'
        'int main(void) { f(9); printf("%g %d\\n", a[3], __LINE__); return 0; }\n'
    )
    subprocess.run(["gcc", "a.c", "-o", "plain"], cwd=tmp_path, check=True)
    made = looptune("cc", "a.c", "--arch", "none", "-o", "own", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert printed(tmp_path, "own") == printed(tmp_path, "plain")


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [
        ("gcc", "-std=c89 -pedantic-errors"),
        *(
            pytest.param(*case, marks=pytest.mark.wide)
            for case in (("gcc", "-std=c99 -pedantic"), ("clang", "-std=c89 -pedantic-errors"), ("clang", "-std=c11"))
        ),
    ],
)
def test_calls_are_c_of_every_standard(
    compiler: str, standard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is added to the text of a user says nothing under the options with which the text says nothing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    (tmp_path / "a.c").write_text(
        "#pragma hmpp f codelet\nstatic void f(int n, const double *x, double *y)\n{\n    int i;\n"
        "    for (i = 0; i < n; i++)\n        y[i] += 2 * x[i];\n}\n"
        "int main(void)\n{\n    double x[9] = {1}, y[9] = {2};\n"
        "#pragma hmpp f advancedload, args[x]\n#pragma hmpp f callsite, args[x].advancedload=true, asynchronous\n"
        "    f(9, x, y);\n#pragma hmpp f synchronize\n#pragma hmpp f release\n    return (int)y[0];\n}\n"
    )
    (tmp_path / "b.c").write_text(
        "double dot(int n, const double *x);\ndouble dot(int n, const double *x)\n{\n    double s = 0;\n    int i;\n"
        "    for (i = 0; i < n; i++) s += x[i];\n    return s;\n}\n"
    )
    monkeypatch.setenv("CC", compiler)
    chosen = [word for name in ("f", "dot") for word in ("--kernel", name)]
    options = (*standard.split(), *STRICT, "--arch", "none", *chosen)
    made = subprocess.run(
        [sys.executable, "-m", "looptune", "cc", "a.c", "b.c", *options], cwd=tmp_path, capture_output=True, text=True
    )
    said = made.stderr.replace("warning: the C compiler clang has no library for OpenMP: the original loops run on "
                               "one core\n", "")  # fmt: skip
    assert (made.returncode, said) == (0, "")
    assert subprocess.run([tmp_path / "a.out"]).returncode == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-funsigned-char", "char is unsigned for this compiler"),
        ("-fsingle-precision-constant", "-fsingle-precision-constant makes constants float"),
        ("-U__SIZEOF_LONG__ -D__SIZEOF_LONG__=4", "pointers or long are not of 64 bits"),
    ],
)
def test_types_that_kernels_have_not_got(options: str, said: str, tmp_path: Path) -> None:
    """Where options change what types are, the file is compiled as it is, with a warning."""
    text = SCALE.replace("x[i] *= 2;", "x[i] *= (char)0x82 * 1.1;")
    (tmp_path / "a.c").write_text(text)
    made = looptune("cc", "-c", "-w", "a.c", *options.split(), "--arch", "none", cwd=tmp_path)
    assert (made.code, made.err) == (0, f"warning: {made.err[9:]}")
    assert said in made.err
    assert "nothing of a.c is replaced" in made.err
    assert b"looptune" not in (tmp_path / "a.o").read_bytes()


def test_a_file_compiled_twice(tmp_path: Path) -> None:
    """A file that is compiled for several types, and is found beside another header of the same name."""
    for name in ("one", "two", "two/sub"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.h").write_text(f"enum {{ HERE = {len(name)} }};\n")
    (tmp_path / "two" / "sub" / "a.c").write_text(
        '#include "own.h"\n#define NAME_(t) scale_##t\n#define NAME(t) NAME_(t)\n#pragma hmpp s codelet\n'
        "static void work(int n, REAL *x) { for (int i = 0; i < n; i++) x[i] *= HERE; }\n"
        "void NAME(REAL)(int n, REAL *x) { work(n, x); }\n"
    )
    (tmp_path / "main.c").write_text(
        "void scale_float(int, float *); void scale_double(int, double *);\n"
        "int main(void) { float x[1] = {2}; double y[1] = {3}; scale_float(1, x); scale_double(1, y);\n"
        "  return (int)(x[0] * 10 + y[0]); }\n"
    )
    for kind in ("float", "double"):
        options = ("-c", "two/sub/a.c", f"-DREAL={kind}", "-iquote", "one", "-o", f"{kind}.o", "--arch", "none")
        assert looptune("cc", *options, cwd=tmp_path).code == 0
    made = looptune("cc", "main.c", "float.o", "double.o", "-lpthread", "-ldl", "-lm", "-fopenmp", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert subprocess.run([tmp_path / "a.out"]).returncode == 161


def test_functions_that_cannot_be_read(tmp_path: Path) -> None:
    """Codelets that the parser cannot read, or what they call, are left alone, and the others are replaced."""
    loop = "for (int i = 0; i < n; i++) x[i]"
    (tmp_path / "a.c").write_text(
        "#include <stdio.h>\nstatic double square(double v) { __typeof__(v) w = v; return w * w + 1; }\n"
        f"#pragma hmpp a codelet\nvoid a(int n, double *x) {{ {loop} = square(x[i]); }}\n"
        f"#pragma hmpp b codelet\nvoid b(int n, double *x) {{ __typeof__(1) s = 3; {loop} += s; }}\n"
        f"#pragma hmpp c codelet\nvoid c(int n, __typeof__(1.0) *x) {{ {loop} += 1; }}\n"
        f"#pragma hmpp d codelet\nvoid d(int n, double *x) {{ {loop} *= 2; }}\n"
        "int main(void) { double x[2] = {1, 4}; a(2, x); b(2, x); c(2, x); d(2, x); "
        'printf("%g %g\\n", x[0], x[1]); }\n'
    )
    made = looptune("cc", "a.c", "-w", "--arch", "none", "-o", "app", cwd=tmp_path)
    assert made.code == 0
    assert [line for line in made.err.splitlines() if line.endswith("is not replaced")] == ["c is not replaced"]
    assert printed(tmp_path, "app") == "12 42\n"
    assert "d (a.c:10): calls on the host: 1" in printed(tmp_path, "app", LOOPTUNE_VERBOSE="1")
    made = looptune("cc", "a.c", "-w", "--arch", "none", "--kernel", "c", "--kernel", "d", "-o", "app", cwd=tmp_path)
    assert made.code == 0
    assert made.err.count("is not replaced") == 1


def test_functions_with_results(tmp_path: Path) -> None:
    """Functions of one name in two files, long long beside long, a declaration on several lines, with attributes."""
    loops = "{ long long s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }\n"
    for name, factor in (("one", 2), ("two", 3)):
        (tmp_path / f"{name}.c").write_text(
            "#pragma hmppcg unroll 2 // ; static\n"
            f"__attribute__((noinline)) static\nlong long /* a sum */ __attribute__((unused))\nsum (int n,\n    // of\n"
            f"    const short *x)\n{loops}long long {name}(int n, const short *x) {{ return {factor} * sum(n, x); }}\n"
            f"double ({name}_)(int n, const short *x) {loops}"
        )
    (tmp_path / "main.c").write_text(
        "long long one(int, const short *), two(int, const short *);\ndouble one_(int, const short *);\n"
        "int main(void) { short x[3] = {1, 2, 3}; return (int)(one(3, x) + two(2, x) + one_(1, x)); }\n"
    )
    kernels = [word for name in ("sum", "one_") for word in ("--kernel", name)]
    made = looptune("cc", "one.c", "two.c", "main.c", "-Wall", "-Werror", "-Wno-unknown-pragmas", *kernels,
                    "--arch", "none", cwd=tmp_path)  # fmt: skip
    assert made.code == 0, made.err
    assert made.err.count("is not replaced") == 1
    assert subprocess.run([tmp_path / "a.out"]).returncode == 22


@pytest.mark.parametrize(("text", "warns"), [("", False), ("int a[2] = { [0] 1 };\n", False),
                                             ("int a[2] = { [0] 1 };\n" + SCALE, True)])  # fmt: skip
def test_warnings_are_about_codelets(text: str, warns: bool, tmp_path: Path) -> None:
    """What looptune cannot read is of no interest in a file without codelets."""
    (tmp_path / "a.c").write_text(text)
    made = looptune("cc", "-c", "a.c", "--arch", "none", cwd=tmp_path)
    assert made.code == 0
    assert made.err.endswith("nothing of a.c is replaced\n") if warns else made.err == ""


def test_what_cannot_be_replaced_is_compiled(tmp_path: Path) -> None:
    """A region that calls what has effects is compiled as it is, with a warning; -flto is for the others."""
    region = "#pragma hmpp {} region\n{{ for (i = 0; i < 9; i++) x[i] += {}; }}\n"
    both = region.format("a", "1 + 0 * rand()") + region.format("b", "1 + 0 * rand()")
    (tmp_path / "a.c").write_text(
        f"#include <stdlib.h>\nvoid scale(int, double *);\nint main(void) {{ double x[9] = {{0}}; int i;\n{both}"
        "  scale(9, x); return (int)x[3]; }\n"
    )
    (tmp_path / "b.c").write_text(SCALE)
    made = looptune("cc", "a.c", "b.c", "-flto", "-O1", "--arch", "none", "-o", "app", cwd=tmp_path)
    assert made.code == 0
    assert [f"main:{line} is not replaced" in made.err for line in (4, 6)] == [True, True], made.err
    assert subprocess.run([tmp_path / "app"]).returncode == 4


def test_makefiles(tmp_path: Path) -> None:
    """Rules for make name the user's own files, as those of gcc do; files of other languages keep their options."""
    (tmp_path / "a.h").write_text("\n")
    (tmp_path / "a.c").write_text('#include "a.h"\n' + SCALE)
    (tmp_path / "main.cpp").write_text(
        'extern "C" void scale(int, double *);\nint main() { double x[1] = {VALUE}; scale(1, x); return (int)x[0]; }\n'
    )
    for options in ("-c a.c -MMD -MP", "-c ./a.c -oa2.o -MD -MF deps", "./a.c main.cpp -DVALUE=3 -MMD -o app"):
        made = looptune("cc", *options.split(), "--arch", "none", cwd=tmp_path)
        assert (made.code, made.err) == (0, ""), options
    assert (tmp_path / "a.d").read_text() == "a.o: a.c a.h\na.h:\n"
    assert (tmp_path / "deps").read_text().startswith("a2.o: a.c")
    assert (tmp_path / "app-a.d").read_text() == "app: a.c a.h\n"
    assert subprocess.run([tmp_path / "app"]).returncode == 6


def test_questions_to_the_compiler(tmp_path: Path) -> None:
    """Tools that build programs ask the compiler who it is, and let it preprocess."""
    (tmp_path / "a.c").write_text(SCALE)
    for options in (["--version"], ["-E", "-P", "a.c"]):
        command = [sys.executable, "-m", "looptune", "cc", *options]
        own = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        plain = subprocess.run(["gcc", *options], cwd=tmp_path, capture_output=True, text=True)
        assert (own.returncode, own.stdout, own.stderr) == (0, plain.stdout, "")
