/* expect:
FILE:7:18: fullunroll: the trip count of loop i, last[0], is not known; `unroll U` makes only U copies
    #pragma hmppcg fullunroll
                   ^^^^^^^^^^
*/
void f(int n, double x[n], int last[n]) {
  #pragma hmppcg fullunroll
  for (int i = 0; i < last[0]; i++) x[i] = 1;
}
