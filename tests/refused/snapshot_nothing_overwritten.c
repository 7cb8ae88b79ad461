/* expect:
FILE:7:18: snapshot x: no iteration of loop i reads what a later one overwrites
    #pragma hmppcg snapshot x
                   ^^^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  #pragma hmppcg snapshot x
  for (int i = 1; i < n; i++)
    x[i] = x[i - 1] + y[i];
}
