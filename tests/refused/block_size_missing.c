/* expect:
FILE:7:18: grid needs a block size (syntax: grid blocksize XxY)
    #pragma hmppcg grid
                   ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg grid
  for (int i = 0; i < n; i++) B[i] = A[i];
}
