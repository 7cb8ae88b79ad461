/* expect:
FILE:6:17: N is not declared: give its value with -D N=…
  void f(double A[N]) {
                  ^
*/
void f(double A[N]) {
  for (int i = 0; i < N; i++) A[i] = 1;
}
