/* expect:
FILE:7:30: a designated initialiser is not accepted in a codelet: write the values in order, zeros included instead
    int w[4] = {[2] = 7, [1] = 2};
                               ^
*/
void f(int n, int *a) {
  int w[4] = {[2] = 7, [1] = 2};
  for (int i = 0; i < n; i++) a[i] = w[i % 4];
}
