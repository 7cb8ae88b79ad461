/* expect:
FILE:9:20: cut has no effect without distribute: write `distribute` before a loop around it
      #pragma hmppcg cut
                     ^^^
*/
void f(int n, double A[n], double B[n]) {
  for (int i = 0; i < n; i++) {
    A[i] = 1;
    #pragma hmppcg cut
    B[i] = 2;
  }
}
