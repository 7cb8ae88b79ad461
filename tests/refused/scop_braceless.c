/* expect:
FILE:8:9: #pragma scop before a body without braces must mark one loop: write braces around the scop
  #pragma scop
          ^^^^
*/
void f(int n, double *x, int k) {
  if (k)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 1;
  for (int i = 0; i < n; i++) x[i] = 2;
#pragma endscop
}
