/* expect:
FILE:7:9: #pragma scop has no #pragma endscop in its block
  #pragma scop
          ^^^^
*/
void f(int n, double *x) {
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 1;
}
