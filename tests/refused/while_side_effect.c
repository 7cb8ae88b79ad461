/* expect:
FILE:7:12: -- inside an expression is not accepted in a codelet: write it as a statement of its own instead
    while (x[n--] > 0) x[n] = 1;
             ^
*/
void f(int n, double *x) {
  while (x[n--] > 0) x[n] = 1;
}
