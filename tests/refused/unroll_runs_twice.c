/* expect:
FILE:7:43: unroll 4 takes one length of runs, got 2
    #pragma hmppcg unroll 4, split, runs 2, runs 2
                                            ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, split, runs 2, runs 2
  for (int i = 0; i < n; i++) A[i] = B[i];
}
