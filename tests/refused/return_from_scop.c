/* expect:
FILE:9:19: a return from a part of a function is not accepted: make the part a function of its own
      if (x[i] < 0) return;
                    ^^^^^^
*/
void f(int n, double *x) {
#pragma scop
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) return;
    x[i] = 1;
  }
#pragma endscop
}
