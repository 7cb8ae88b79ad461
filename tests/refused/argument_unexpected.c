/* expect:
FILE:7:29: fullunroll takes no argument, got '4'
    #pragma hmppcg fullunroll 4
                              ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fullunroll 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
