/* expect:
FILE:8:3: macro AT requires 2 arguments but was passed 1
    for (int i = 0; i < n; i++) AT(i) = 1;
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
#define AT(i, j) x[(i) + (j)]
void f(int n, double *x) {
  for (int i = 0; i < n; i++) AT(i) = 1;
}
