/* expect:
FILE:7:11: the directive's name is missing after hmppcg
    #pragma hmppcg
            ^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg
  for (int i = 0; i < n; i++) x[i] = 1;
}
