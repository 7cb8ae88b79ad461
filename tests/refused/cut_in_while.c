/* expect:
FILE:11:22: cut is inside a while loop (line 9): move it out
        #pragma hmppcg cut
                       ^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++)
    while (A[i] > 1) {
      A[i] = A[i] / 2;
      #pragma hmppcg cut
      B[i] = B[i] + 1;
    }
}
