/* expect:
FILE:7:18: box takes one number at most (syntax: box [MULTIPLE])
    #pragma hmppcg box 2, 4
                   ^^^^^^^^
*/
void f(int n, double A[n]) {
  #pragma hmppcg box 2, 4
  for (int i = 0; i < n; i++) A[i] = 1;
}
