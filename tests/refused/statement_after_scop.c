/* expect:
FILE:8:17: statements stand after this scop's pragma in its line: write it in a line of its own
    int i; _Pragma("scop") c += 1;
                  ^^^^
  --kernel chooses one of its loop nests: f:9, f:10
*/
void f(int n, double *x, double c) {
  int i; _Pragma("scop") c += 1;
  for (i = 0; i < n; i++) x[i] = c;
  for (i = 0; i < n; i++) x[i] += c;
  _Pragma("endscop")
}
