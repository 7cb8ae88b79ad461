/* expect:
FILE:7:23: fuse takes at least two loops
    #pragma hmppcg fuse 1
                        ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse 1
  for (int i = 0; i < n; i++) B[i] = A[i];
}
