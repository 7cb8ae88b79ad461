/* expect:
FILE:11:3: a codelet that returns a value it computes is not accepted: make the function void, and write the value through a pointer parameter, `*result = …;`
    return s;
    ^^^^^^
  --kernel chooses one of its loop nests: f:9, f:10
*/
double f(int n, double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  for (int i = 0; i < n; i++) x[i] = s;
  return s;
}
