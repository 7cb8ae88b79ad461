/* expect:
FILE:7:35: reduce names +:B, but loop i reduces nothing
    #pragma hmppcg parallel, reduce(+:B)
                                    ^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg parallel, reduce(+:B)
  for (int i = 0; i < n; i++) B[i] = A[i];
}
