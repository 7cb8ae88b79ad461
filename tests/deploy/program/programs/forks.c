/* Children of a process that has run its loops, and their children, run them too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 20000 };
static float x[N], y[N];

void axpy(int n, float a, const float *restrict from, float *restrict to)
{
#pragma scop
    for (int i = 0; i < n; i++)
        to[i] = a * from[i] + to[i];
#pragma endscop
}

static void show(const char *who)
{
    double sum = 0;
    axpy(N, 2, x, y);
    for (int i = 0; i < N; i++) sum += y[i] * (i % 11);
    printf("%s %g\n", who, sum);
    fflush(stdout);
}

static int in_child(const char *who)
{
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
        show(who);
        return 1;
    }
    waitpid(child, &status, 0);
    if (status) printf("%s: status %d\n", who, status);
    return 0;
}

int main(void)
{
    for (int i = 0; i < N; i++) x[i] = i % 7;
    fflush(stdout);
    if (in_child("before")) return 0;
    show("first");
    if (in_child("after")) return in_child("grandchild"), 0;
    show("again");
    if (in_child("later")) return 0;
    return 0;
}
