/* expect:
FILE:7:23: a block size is one or two positive numbers, such as 32x8
    #pragma hmppcg grid blocksize 0x4
                        ^^^^^^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg grid blocksize 0x4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
