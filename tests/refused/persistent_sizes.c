/* expect:
FILE:7:18: persistent of loop t: its nests have blocks of 64 and 256 threads: give all nests the same block size
  #pragma looptune persistent
                   ^^^^^^^^^^
*/
void f(int n, int steps, double A[n], double s[1]) {
#pragma looptune persistent
  for (int t = 0; t < steps; t++) {
#pragma hmppcg grid blocksize 32x2
#pragma hmppcg parallel
    for (int i = 0; i < n; i++) s[0] += A[i];
#pragma hmppcg grid blocksize 32x8
    for (int i = 0; i < n; i++) A[i] = A[i] / s[0];
  }
}
