/* expect:
FILE:8:1: unexpected end of file: a '}' or ';' is missing
  }
  ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) { x[i] = 1;
}
