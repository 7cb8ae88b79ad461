/* expect:
FILE:11:3: a pragma stands between a statement and its else: write the statement in braces
    else
    ^^^^
*/
void f(int n, double *x, int k) {
  if (k)
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 1;
#pragma endscop
  else
    x[0] = 2;
}
