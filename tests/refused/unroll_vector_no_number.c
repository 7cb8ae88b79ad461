/* expect:
FILE:7:35: vector needs a number of consecutive iterations, such as split, vector 4
    #pragma hmppcg unroll 4, split, vector
                                    ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, split, vector
  for (int i = 0; i < n; i++) A[i] = B[i];
}
