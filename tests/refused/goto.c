/* expect:
FILE:8:19: goto is not accepted in a codelet: write a loop or an if instead
      if (x[i] < 0) goto done;
                    ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) goto done;
    x[i] = 1;
  }
done:;
}
