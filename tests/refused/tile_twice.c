/* expect:
FILE:7:28: tile names loop i twice
    #pragma hmppcg tile i:4, i:8
                             ^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg tile i:4, i:8
  for (int i = 0; i < n; i++) B[i] = A[i];
}
