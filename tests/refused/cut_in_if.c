/* expect:
FILE:11:22: cut stands in an if whose condition its own statements may change (line 9): move it out of there
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
