/* expect:
FILE:7:18: tile names loop j, but stands before loop i
    #pragma hmppcg tile j:4
                   ^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg tile j:4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
