/* expect:
FILE:9:1: syntax error before '}'
  }
  ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
}
