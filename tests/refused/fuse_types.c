/* expect:
FILE:7:18: fuse: loop k counts in int64, loop i in int32
    #pragma hmppcg fuse
                   ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) A[i] = 1;
  for (long k = 0; k < n; k++) B[k] = 1;
}
