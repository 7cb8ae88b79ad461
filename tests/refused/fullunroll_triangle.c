/* expect:
FILE:8:20: fullunroll: the trip count of loop j depends on loop i; `unroll U` makes only U copies
      #pragma hmppcg fullunroll
                     ^^^^^^^^^^
*/
void f(double A[8][8]) {
  for (int i = 0; i < 8; i++)
    #pragma hmppcg fullunroll
    for (int j = 0; j < i; j++) A[i][j] = 1;
}
