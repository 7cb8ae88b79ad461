/* expect:
FILE:11:19: this break leaves the part of the function that is compiled
      if (x[0] > 3) break;
                    ^^^^^
  --kernel chooses one of its loop nests: f:8
*/
void f(int n, double *x) {
  for (int t = 0; t < n; t++) {
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 1;
    if (x[0] > 3) break;
#pragma endscop
  }
}
