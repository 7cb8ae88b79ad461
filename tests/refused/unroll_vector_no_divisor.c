/* expect:
FILE:7:35: unroll 6 cannot have vectors of 4: 4 does not divide 6
    #pragma hmppcg unroll 6, split, vector 4
                                    ^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 6, split, vector 4
  for (int i = 0; i < n; i++) A[i] = B[i];
}
