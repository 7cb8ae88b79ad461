/* expect:
FILE:11:9: f has 2 parts marked by #pragma scop: choose one with --kernel: f:8, f:11
  #pragma scop
          ^^^^
  --kernel chooses one of its loop nests: f:9, f:12
*/
void f(int n, double *x) {
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 1;
#pragma endscop
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 2;
#pragma endscop
}
