/* expect:
FILE:11:22: cut is inside an if whose own statements may change its condition (line 9): move it out
        #pragma hmppcg cut
                       ^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++)
    if (A[i] > 1) {
      A[i] = 0;
      #pragma hmppcg cut
      B[i] = 1;
    }
}
