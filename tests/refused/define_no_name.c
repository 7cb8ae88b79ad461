/* expect:
FILE:6:1: expected a macro name
  #define 4 5
  ^^^^^^^^^^^
*/
#define 4 5
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
