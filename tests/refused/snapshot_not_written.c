/* expect:
FILE:7:18: snapshot y: loop i does not write y
    #pragma hmppcg snapshot y
                   ^^^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  #pragma hmppcg snapshot y
  for (int i = 0; i < n - 1; i++)
    x[i] = y[i + 1];
}
