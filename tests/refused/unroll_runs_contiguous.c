/* expect:
FILE:7:28: runs 2 needs split: write unroll 4, split, runs 2
    #pragma hmppcg unroll 4, runs 2
                             ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, runs 2
  for (int i = 0; i < n; i++) A[i] = B[i];
}
