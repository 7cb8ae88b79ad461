/* expect:
FILE:7:10: -- inside an expression is not accepted in a codelet: write it as a statement of its own instead
    while (n--) x[n] = 1;
           ^
*/
void f(int n, double *x) {
  while (n--) x[n] = 1;
}
