/* expect:
FILE:7:18: fullunroll: loop i runs 1,000 times, the limit is 256; `unroll U` makes only U copies
    #pragma hmppcg fullunroll
                   ^^^^^^^^^^
*/
void f(double x[1000]) {
  #pragma hmppcg fullunroll
  for (int i = 0; i < 1000; i++) x[i] = 1;
}
