/* expect:
FILE:7:18: unknown directive 'unrol'; did you mean 'unroll'?
    #pragma hmppcg unrol 4
                   ^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unrol 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
