/* expect:
FILE:7:18: nnan: loop i chooses between no two numbers that it compares, as `a < b ? a : b` does
    #pragma hmppcg nnan
                   ^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg nnan
  for (int i = 0; i < n; i++) x[i] = x[i] < 0 ? 1 : x[i];
}
