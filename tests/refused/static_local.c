/* expect:
FILE:8:17: sum, which is static, is not accepted in a codelet: write a parameter instead
    static double sum;
                  ^^^
  --kernel chooses one of its loop nests: f:9, f:10
*/
void f(int n, double *x) {
  static double sum;
  for (int i = 0; i < n; i++) sum += x[i];
  for (int i = 0; i < n; i++) x[i] = sum;
}
