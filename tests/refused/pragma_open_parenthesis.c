/* expect:
FILE:7:38: missing ')'
    #pragma hmppcg gridify(i, private(a)
                                       ^
*/
void f(int n, double *x) {
  #pragma hmppcg gridify(i, private(a)
  for (int i = 0; i < n; i++) x[i] = 1;
}
