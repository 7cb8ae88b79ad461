"""Codelets whose products tensor cores compute, at sizes that nothing divides."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case, Sizes

HEAD = """
void f(int n, int m, int l, double alpha, double A[n][l], double B[l][m], double C[n][m])
{
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) {"""
GEMM = (
    HEAD
    + """ C[i][j] *= 3; for (int k = 0; k < l; k++) C[i][j] += alpha * A[i][k] * B[k][j]; } }
"""
)
LOCAL = (
    HEAD
    + """ double s = 0; for (int k = 0; k < l; k++) s -= A[i][k] * B[k][j]; C[i][j] = s + C[i][j] * alpha; } }
"""
)
SYR2K = """
void f(int n, int l, double A[n][l], double B[n][l], double C[n][n])
{
    for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) for (int k = 0; k < l; k++)
        C[i][j] += A[j][k] * 3 * B[i][k] - B[j][k] * 3 * A[i][k];
}
"""
CORR = """
void f(int n, int m, double A[n][m], double C[m][m])
{
    for (int i = 0; i < m - 1; i++) for (int j = i + 1; j < m; j++) {
        C[i][j] = 0; for (int k = 0; k < n; k++) C[i][j] += A[k][i] * A[k][j];
        C[j][i] = C[i][j];
    }
}
"""
UPDATE = """
void f(int n, int l, double A[n][n])
{
    for (int i = l; i < n; i++) for (int j = l; j < n; j++) for (int k = 0; k < l; k++) A[i][j] -= A[i][k] * A[k][j];
}
"""
SYMM = """
void f(int n, int m, double A[n][n], double B[n][m], double C[n][m])
{
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) {
        double s = 0; for (int k = 0; k < i; k++) s += B[k][j] * A[i][k];
        C[i][j] = s * 2 + B[i][j];
    }
}
"""
TRIANGLE = """
void f(int n, int m, double A[n][n], double B[n][m], double C[n][m])
{
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)
        for (int k = i + 1; k < n; k++) C[i][j] -= A[k][i] * B[k][j];
}
"""
BATCH = """
void f(int n, int m, int l, float A[n][m][l], double B[l][l], double C[n][m][l])
{
    for (int r = 0; r < n; r++) for (int q = 0; q < m; q++) for (int p = 0; p < l; p++)
        for (int k = 1; k < l; k += 2) C[r][q][p] += A[r][q][k] * B[k][p];
}
"""
SMALL = "loop k: tensor, block 32x32, warp 16x16, stages 2"


def sizes(*counts: tuple[int, int, int]) -> tuple[Sizes, ...]:
    return tuple(dict(zip("nml", c, strict=True)) for c in counts)


CASES = {
    "a product": Case(GEMM, (SMALL,), sizes((37, 41, 19), (48, 34, 50), (1, 1, 1))),
    "a factor apart": Case(GEMM, ("loop k: tensor, block 32x16, warp 32x8, stages 3, strip 32", "loop k: factor"),
                           sizes((37, 18, 34), (32, 16, 64))),
    "a difference": Case(LOCAL, ("loop k: tensor, block 16x32, warp 8x16, stages 3, shape 8x8x4",),
                         sizes((17, 33, 18))),
    "two products of a triangle": Case(
        SYR2K, ("loop i: gridify(i, j)", "loop k: tensor, block 64x32, warp 32x16, shape 16x8x8"),
                                       ({"n": 45, "l": 33},)),
    "columns, idle blocks": Case(CORR, ("loop i: gridify(i, j)", "codelet: pack", SMALL), ({"n": 23, "m": 70},)),
    "sides that are no powers of two": Case(GEMM, (
        "loop k: factor", "loop k: tensor, block 48x48, warp 16x24, stages 3"), sizes((53, 50, 34), (96, 48, 48))),
    "up to the diagonal": Case(SYMM, (SMALL,), sizes((45, 39, 0), (70, 33, 0))),
    "from the diagonal": Case(TRIANGLE, (SMALL,), sizes((45, 39, 0), (66, 34, 0))),
    "an array of its own": Case(UPDATE, (f"{SMALL}, shape 16x8x4",), ({"n": 45, "l": 7},)),
    "floats": Case(GEMM.replace("double", "float"), ("loop k: tensor tf32x3, block 32x32, warp 16x16, stages 2",),
                   sizes((37, 41, 19), (48, 34, 50), (1, 1, 1))),
    "floats by columns": Case(CORR.replace("double", "float"), (
        "loop i: gridify(i, j)", "loop k: tensor tf32x3, block 32x64, warp 32x32, stages 3, shape 16x8x4"),
        ({"n": 48, "m": 72}, {"n": 23, "m": 70})),
    "rounded floats": Case(GEMM.replace("double", "float"), (
        "loop k: tensor tf32, tolerance 1e-3, block 32x32, warp 16x16, stages 2", "loop k: factor"),
        sizes((37, 41, 19), (48, 34, 50))),
    "rounded floats by columns": Case(CORR.replace("double", "float"), (
        "loop i: gridify(i, j)", "loop k: tensor tf32, tolerance 1e-3, block 32x64, warp 32x32, shape 16x8x4"),
        ({"n": 48, "m": 72},)),
    "rounded floats in pairs": Case(GEMM.replace("double", "float"), (
        "loop k: tensor bf16, tolerance 1e-2, block 32x32, warp 16x16, stages 2", "loop k: factor"),
        sizes((37, 41, 19), (48, 34, 50))),
    "rounded floats in pairs, by columns": Case(CORR.replace("double", "float"), (
        "loop i: gridify(i, j)", "loop k: tensor bf16, tolerance 1e-2, block 32x64, warp 32x32, shape 16x8x8"),
        ({"n": 48, "m": 72}, {"n": 23, "m": 70})),
    "a grid of three dimensions": Case(BATCH, ("loop r: gridify(r, q, p)", SMALL), sizes((2, 21, 26))),
}  # fmt: skip
