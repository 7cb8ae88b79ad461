/* expect:
FILE:8:18: one loop takes either noparallel or parallel, once
    #pragma hmppcg noParallel
                   ^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg parallel
  #pragma hmppcg noParallel
  for (int i = 0; i < n; i++) x[i] = 1;
}
