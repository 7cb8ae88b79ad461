/* expect:
FILE:8:9: #pragma scop before a body without braces must mark one loop: write braces around the scop
  #pragma scop
          ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++)
#pragma scop
    x[i] = 1;
#pragma endscop
}
