/* expect:
FILE:9:49: a difference of pointers to rows is not accepted in a codelet: write one of indices instead
    for (int (*q)[m] = p; q < p + n; q++) b[0] += q - p;
                                                  ^^^^^
  --kernel chooses one of its loop nests: f:9
*/
void f(int n, int m, int *a, float *b) {
  int (*p)[m] = (int (*)[m])a;
  for (int (*q)[m] = p; q < p + n; q++) b[0] += q - p;
}
