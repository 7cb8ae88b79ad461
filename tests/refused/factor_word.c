/* expect:
FILE:7:25: unroll factor must be a whole number, got 'four'
    #pragma hmppcg unroll "four"
                          ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll "four"
  for (int i = 0; i < n; i++) B[i] = A[i];
}
