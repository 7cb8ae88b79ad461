/* expect:
FILE:9:20: snapshot x: the nest has a while loop (line 7), whose trips are not known
      #pragma hmppcg snapshot x
                     ^^^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  while (y[0] > 1) {
    y[0] = y[0] / 2;
    #pragma hmppcg snapshot x
    for (int i = 0; i < n - 1; i++)
      x[i] = x[i + 1] * y[i];
  }
}
