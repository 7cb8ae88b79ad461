/* expect:
FILE:6:23: a block of 16,777,216 threads: no device allows more than 65,536, most allow 1,024
  #pragma looptune grid blocksize 4096x4096
                        ^^^^^^^^^^^^^^^^^^^
*/
#pragma looptune grid blocksize 4096x4096
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += 1;
}
