/* expect:
FILE:7:25: unroll factor must be at least 1, got 0
    #pragma hmppcg unroll 0
                          ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 0
  for (int i = 0; i < n; i++) B[i] = A[i];
}
