/* Calls both parts of a program. With an argument: opens the shared libraries, calls each, closes it, and forks. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int part(long long n, float *x, float *y);
enum { N = 300 };
static float x[N], y[N];

static int called(part *one) {
    int k, good = 1;
    for (k = 0; k < N; k++) x[k] = (float)k, y[k] = 1;
    if (one(N, x, y) != 0) return 0;
    for (k = 0; k < N; k++) good &= y[k] == 1 + 2 * x[k];
    return good;
}

#ifdef LINKED
part call_one, call_two;
#endif

int main(int argc, char **argv) {
    int k, good = 1, status = 0;
#ifdef LINKED
    good = called(call_one) && called(call_two);
#endif
    for (k = 1; k < argc; k++) {
        void *library = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL), *found;
        part *one;
        found = library ? dlsym(library, strstr(argv[k], "one") ? "call_one" : "call_two") : NULL;
        if (!found) {
            printf("%s\n", dlerror());
            return 1;
        }
        memcpy(&one, &found, sizeof one);
        good &= called(one);
        dlclose(library);
    }
    fflush(stdout);
    if (fork() == 0) exit(0);
    wait(&status);
    printf("%s, child %d\n", good ? "right" : "wrong", status);
    return !good;
}
