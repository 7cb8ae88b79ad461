/* expect:
FILE:7:18: expand y: y is read after loop i, and which iteration of loop i writes it last is not known: subscript k[i] of y cannot be analysed
    #pragma hmppcg expand y
                   ^^^^^^^^
*/
void f(int n, int m, int k[n], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++)
    y[k[i]] = x[i];
}
