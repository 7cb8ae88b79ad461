/* expect:
FILE:7:18: a directive begins with its name, such as unroll
    #pragma hmppcg 4, split
                   ^^^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg 4, split
  for (int i = 0; i < n; i++) x[i] = 1;
}
