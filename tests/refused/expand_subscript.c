/* expect:
FILE:8:18: expand k: a subscript or a bound of a loop is made of k
    #pragma hmppcg expand k
                   ^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  int k;
  #pragma hmppcg expand k
  for (int i = 0; i < n; i++) {
    if (x[i] > 0)
      k = 1;
    else
      k = 0;
    y[i] = x[k];
  }
}
