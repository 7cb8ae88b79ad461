/* expect:
FILE:7:18: splitat: no loop j is left, for which the file has the directive unroll
    #pragma hmppcg splitat 1, 2
                   ^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg splitat 1, 2
  for (int i = 1; i < n; i++)
    #pragma hmppcg unroll 2
    for (int j = i; j < i + 1; j++)
      x[j] = 1;
}
