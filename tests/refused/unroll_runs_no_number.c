/* expect:
FILE:7:35: runs needs a number of consecutive iterations, such as split, runs 4
    #pragma hmppcg unroll 4, split, runs
                                    ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, split, runs
  for (int i = 0; i < n; i++) A[i] = B[i];
}
