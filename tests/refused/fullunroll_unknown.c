/* expect:
FILE:7:18: fullunroll: the trip count of loop i, n, is not known; give it with -D n=...
    #pragma hmppcg fullunroll
                   ^^^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fullunroll
  for (int i = 0; i < n; i++) B[i] = A[i];
}
