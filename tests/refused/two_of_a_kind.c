/* expect:
FILE:8:18: one loop takes either fullunroll or tile or unroll, once
    #pragma hmppcg tile i:4
                   ^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg unroll 2
  #pragma hmppcg tile i:4
  for (int i = 0; i < n; i++) x[i] = 1;
}
