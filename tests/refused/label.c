/* expect:
FILE:8:3: a label is not accepted in a codelet: write a loop or an if instead
    again: x[i] = 1; if (n > 8) goto again;
    ^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
  again: x[i] = 1; if (n > 8) goto again;
  }
}
