/* expect:
FILE:7:17: sum, which is static, is not accepted in a codelet: write a parameter instead
    static double sum;
                  ^^^
*/
void f(int n, double *x) {
  static double sum;
  for (int i = 0; i < n; i++) sum += x[i];
}
