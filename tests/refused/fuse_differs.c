/* expect:
FILE:10:18: unroll differs from the unroll of the loop this one is fused with
    #pragma hmppcg unroll 4
                   ^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse
  #pragma hmppcg unroll 2
  for (int i = 0; i < n; i++) A[i] = 1;
  #pragma hmppcg unroll 4
  for (int k = 0; k < n; k++) B[k] = 1;
}
