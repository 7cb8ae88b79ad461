/* expect:
FILE:7:17: this initialiser of t is not accepted in a codelet: write a list in braces instead
    double t[2] = x;
                  ^
*/
void f(int n, double *x) {
  double t[2] = x;
  for (int i = 0; i < n; i++) x[i] = t[0];
}
