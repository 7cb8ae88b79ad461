/* expect:
FILE:8:18: unroll of i with jam: while loops of different copies cannot be merged
    #pragma hmppcg unroll 2, jam
                   ^^^^^^^^^^^^^
  instead: `unroll 2` is legal
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 2, jam
  for (int i = 0; i < n; i++)
    while (A[i] > 1) A[i] = A[i] / 2;
}
