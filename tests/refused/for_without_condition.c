/* expect:
FILE:7:3: a for without a condition or a break is not accepted in a codelet: write the condition that ends it instead
    for (int i = 0;; i++) x[i] = 1;
    ^^^
*/
void f(int n, double *x) {
  for (int i = 0;; i++) x[i] = 1;
}
