/* expect:
FILE:7:27: snapshot takes names of arrays (syntax: snapshot ARRAY [, ARRAY ...])
    #pragma hmppcg snapshot x:2
                            ^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg snapshot x:2
  for (int i = 0; i < n - 1; i++)
    x[i] = x[i + 1];
}
