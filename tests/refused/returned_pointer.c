/* expect:
FILE:10:3: f returns a value that is not a number: make the function void
    return x;
    ^^^^^^
  --kernel chooses one of its loop nests: f:8, f:9
*/
double *f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
  for (int i = 0; i < n; i++) x[i] *= 2;
  return x;
}
