/* expect:
FILE:7:18: fuse 3: only 1 loop after loop i in its block
    #pragma hmppcg fuse 3
                   ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse 3
  for (int i = 0; i < n; i++) B[i] = 1;
  for (int i = 0; i < n; i++) A[i] = 1;
}
