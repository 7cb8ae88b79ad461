/* expect:
FILE:7:26: fuse takes one number (syntax: fuse [N])
    #pragma hmppcg fuse 2, 3
                           ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse 2, 3
  for (int i = 0; i < n; i++) B[i] = A[i];
}
