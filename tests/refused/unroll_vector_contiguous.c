/* expect:
FILE:7:28: vector 2 needs split: write unroll 4, split, vector 2
    #pragma hmppcg unroll 4, vector 2
                             ^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, vector 2
  for (int i = 0; i < n; i++) A[i] = B[i];
}
