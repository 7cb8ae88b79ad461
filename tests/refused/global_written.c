/* expect:
FILE:9:31: a write to sum, which is not a variable of the codelet, is not accepted in a codelet: write *sum, a pointer parameter, instead
    for (int i = 0; i < n; i++) sum += x[i];
                                ^^^
*/
double sum;
double *where(void) { return &sum; }
void f(int n, double *x) {
  for (int i = 0; i < n; i++) sum += x[i];
}
