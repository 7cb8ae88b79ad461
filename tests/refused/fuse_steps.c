/* expect:
FILE:7:18: fuse: loop k steps by 2, loop i by 1
    #pragma hmppcg fuse
                   ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) A[i] = 1;
  for (int k = 0; k < n; k += 2) B[k] = 1;
}
