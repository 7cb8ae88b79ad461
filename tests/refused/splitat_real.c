/* expect:
FILE:7:26: splitat takes values such as k + 1 (syntax: splitat SUM [, SUM ...])
    #pragma hmppcg splitat 3.5
                           ^^^
*/
void f(int n, float *x) {
  #pragma hmppcg splitat 3.5
  for (int i = 0; i < n; i++) x[i] = 0;
}
