/* expect:
FILE:7:38: resident: columns is there twice, or has a value that it does not take (syntax: resident [rows N] [, columns N] [, shared N] [, cyclic])
  #pragma looptune resident columns 2, columns 3
                                       ^^^^^^^^^
*/
void f(int n, int steps, float A[n]) {
#pragma looptune resident columns 2, columns 3
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
}
