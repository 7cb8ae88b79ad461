/* expect:
FILE:7:18: fullunroll: 200 copies of the 200 assignments in loop i are 40,000, the limit is 8,192; `unroll U` makes only U copies
    #pragma hmppcg fullunroll
                   ^^^^^^^^^^
*/
void f(double A[200][200]) {
  #pragma hmppcg fullunroll
  for (int i = 0; i < 200; i++)
    #pragma hmppcg fullunroll
    for (int j = 0; j < 200; j++) A[i][j] = 1;
}
