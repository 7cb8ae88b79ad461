/* expect:
FILE:8:18: fuse: a loop before loop k assigns m, which bounds it
    #pragma hmppcg fuse
                   ^^^^
*/
void f(int n, int A[n], double B[n]) {
  int m = 0;
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) m += A[i];
  for (int k = 0; k < m; k++) B[k] = 1;
}
