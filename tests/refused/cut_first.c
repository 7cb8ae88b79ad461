/* expect:
FILE:9:20: cut: no statement precedes it in loop i; write it between two statements
      #pragma hmppcg cut
                     ^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++) {
    #pragma hmppcg cut
    A[i] = 1;
    B[i] = 2;
  }
}
