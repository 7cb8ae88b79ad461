/* expect:
FILE:11:18: statements stand before this end of a scop in its line: write it in a line of its own
    c += 1; _Pragma("endscop")
                   ^^^^^^^
  --kernel chooses one of its loop nests: f:9, f:10
*/
void f(int n, double *x, double c) {
  int i; _Pragma("scop") /* all of it */
  for (i = 0; i < n; i++) x[i] = c;
  for (i = 0; i < n; i++) x[i] += c;
  c += 1; _Pragma("endscop")
}
