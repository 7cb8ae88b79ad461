/* expect:
FILE:8:18: loop i cannot be reordered: its bounds cannot be analysed
    #pragma hmppcg unroll 2, split
                   ^^^^^^^^^^^^^^^
  instead: `unroll 2` is legal
*/
void f(int n, double A[n], double B[n], int last[n]) {
  #pragma hmppcg unroll 2, split
  for (int i = last[0]; i < n; i++) B[i] = A[i];
}
