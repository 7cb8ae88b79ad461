/* expect:
FILE:10:3: setting t, which is a pointer or an array, is not accepted in a codelet: write its elements, t[…], instead
    t = a;
    ^^^^^
  --kernel chooses one of its loop nests: f:9, f:11
*/
void f(int n, double *a) {
  double *t = malloc(n * sizeof(double));
  for (int i = 0; i < n; i++) t[i] = a[i];
  t = a;
  for (int i = 0; i < n; i++) t[i] = 1;
}
