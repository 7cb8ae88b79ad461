/* expect:
FILE:7:29: permute takes loop names (syntax: permute LOOP, LOOP [, LOOP ...])
    #pragma hmppcg permute i, 2
                              ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg permute i, 2
  for (int i = 0; i < n; i++) B[i] = A[i];
}
