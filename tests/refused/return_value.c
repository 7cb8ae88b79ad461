/* expect:
FILE:9:3: the result of a codelet is not used: write it to an array element or through a pointer
    return s;
    ^^^^^^
*/
double f(int n, double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}
