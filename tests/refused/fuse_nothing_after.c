/* expect:
FILE:7:18: fuse 2: no loop after loop i in its block
    #pragma hmppcg fuse
                   ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) B[i] = A[i];
}
