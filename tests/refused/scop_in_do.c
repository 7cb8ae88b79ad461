/* expect:
FILE:11:3: a pragma stands between a statement and its while: write the statement in braces
    while (k-- > 0);
    ^^^^^
*/
void f(int n, double *x, int k) {
  do
#pragma scop
    for (int i = 0; i < n; i++) x[i] = 1;
#pragma endscop
  while (k-- > 0);
}
