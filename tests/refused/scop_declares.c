/* expect:
FILE:10:10: last is declared in this scop and used after it: declare it before #pragma scop
    double last = 0;
           ^^^^
  --kernel chooses one of its loop nests: f:11, f:12
*/
void f(int n, double *x) {
  x[0] = 1;
#pragma scop
  double last = 0;
  for (int i = 0; i < n; i++) last = x[i];
  for (int i = 0; i < n; i++) x[i] = last;
#pragma endscop
  x[1] = last;
}
