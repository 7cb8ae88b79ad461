#include <stdio.h>
#include <stdlib.h>
typedef struct { float x, y; int tag; double v[2]; } point;
/* Tables of rows; the first column of the one is left as it is. */
void shift(int n, int m, float **a, const float *const *b, const float *s)
{
    for (int i = 0; i < n; i++)
        for (int j = 1; j < m; j++)
            a[i][j] = b[i][j - 1] + s[i];
}
/* Fields of an array of structs, one of them an array. */
void move(int n, point *p, const point *q)
{
    for (int i = 0; i < n; i++) {
        p[i].x += q[i].y;
        p[i].tag = i;
        for (int k = 0; k < 2; k++)
            p[i].v[k] = q[i].v[1 - k] + k;
    }
}
static float **table(int n, int m)
{
    float **made = malloc(n * sizeof *made);
    for (int i = 0; i < n; i++) {
        made[i] = malloc(m * sizeof **made);
        for (int j = 0; j < m; j++) made[i][j] = (i * 7 + j * 3) % 13;
    }
    return made;
}
static void show(const char *what, int n, int m, float **a)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) sum += a[i][j] * (i + 2 * j + 1);
    printf("%s %g\n", what, sum);
}
int main(void)
{
    int n = 7, m = 9;
    float **a = table(n, m), **b = table(n, m), *s = malloc(n * sizeof *s);
    point p[7], q[7];
    for (int i = 0; i < n; i++) {
        s[i] = i;
        p[i] = (point){i, 2 * i, 3, {4, 5}};
        q[i] = (point){1, i, 2, {i, -i}};
    }
    shift(n, m, a, (const float *const *)b, s);
    show("apart", n, m, a);
    shift(0, m, a, NULL, s);
    b[2] = a[3];
    shift(n, m, a, (const float *const *)b, s);
    show("a row of both", n, m, a);
    a[1] = a[0];
    shift(n, m, a, (const float *const *)table(n, m), s);
    show("a row twice", n, m, a);
    move(n, p, q);
    move(n - 1, p + 1, p);
    double t = 0;
    for (int i = 0; i < n; i++) t += p[i].x + p[i].y + p[i].tag + p[i].v[0] * i + p[i].v[1];
    printf("%g\n", t);
    return 0;
}
