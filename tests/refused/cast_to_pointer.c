/* expect:
FILE:7:38: this cast is not accepted in a codelet: write a cast to a number type instead
    for (int i = 0; i < n; i++) x[i] = (long *)i;
                                       ^^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = (long *)i;
}
