/* expect:
FILE:7:18: nnan: loop i has no minimum or maximum, such as `a < b ? a : b`
    #pragma hmppcg nnan
                   ^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg nnan
  for (int i = 0; i < n; i++) x[i] = x[i] < 0 ? 1 : x[i];
}
