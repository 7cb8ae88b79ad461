/* expect:
FILE:9:35: stage takes at most 4 buffers, got 5
          #pragma looptune stage A, buffers 5
                                    ^^^^^^^^^
*/
void f(int n, double A[n], double B[n][n]) {
  for (int i = 0; i < n; i++) {
        #pragma looptune tile j:4
        #pragma looptune stage A, buffers 5
    for (int j = 0; j < n; j++) B[i][0] += A[j];
  }
}
