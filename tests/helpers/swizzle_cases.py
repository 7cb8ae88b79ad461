"""Codelets with directives that give the blocks of a grid another order."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case

COUNTED = """void f(int n, int m, int A[n][m], int s[n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            A[i][j] = A[i][j] + 1 + 3 * i + 7 * j;
    for (int i = 0; i < n; i++)
        s[i] = s[i] + 1;
}
"""
TRIANGLE = COUNTED.replace("int j = 0", "int j = i")
PRODUCT = """void f(int n, int m, float A[n][m], float B[m][n], float C[n][n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < m; k++)
                C[i][j] += A[i][k] * B[k][j];
}
"""
STEPS = """void f(int n, int m, float A[n][m], float B[n][m])
{
    for (int t = 0; t < 4; t++) {
        for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[i - 1][j] / 2;
        for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] + t;
    }
}
"""
SIZES = ({"n": 13, "m": 21}, {"n": 1, "m": 1}, {"n": 40, "m": 5}, {"n": 5, "m": 60})
LINES = {
    **{f"strips of {rows}": (COUNTED, (f"codelet: swizzle {rows}", "codelet: grid blocksize 4x2"))
       for rows in (1, 2, 3, 4, 7, 32)},
    "a triangle": (TRIANGLE, ("loop 1: gridify(i, j)", "codelet: swizzle 3", "codelet: grid blocksize 4x2")),
    "by columns": (COUNTED, ("nest 1: permute j, i", "codelet: swizzle 3", "codelet: grid blocksize 4x2")),
    "tiles in shared memory": (
        PRODUCT, ("loop k: tile k:8", "loop k: stage A, B", "codelet: swizzle 2", "codelet: grid blocksize 8x8")),
    "in parts": (PRODUCT, ("loop k: rfactor 3", "codelet: swizzle 2", "codelet: grid blocksize 8x4")),
    "steps at once": (STEPS, ("loop t: overlap 2, rows 2", "codelet: swizzle 2", "codelet: grid blocksize 16x4")),
    "blocks that wait for each other": (
        STEPS, ("loop t: persistent", "codelet: swizzle 2", "codelet: grid blocksize 4x4")),
}  # fmt: skip
CASES = {name: Case(text, lines, SIZES) for name, (text, lines) in LINES.items()}
