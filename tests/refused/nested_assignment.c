/* expect:
FILE:8:51: an assignment inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) { double s[2] = {1, t = x[i]}; x[i] = s[1] * t; }
                                                    ^^^^^^^^
*/
void f(int n, double *x) {
  double t;
  for (int i = 0; i < n; i++) { double s[2] = {1, t = x[i]}; x[i] = s[1] * t; }
}
