/* expect:
FILE:11:9: a second #pragma scop in one function: write one function for each
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
