/* expect:
FILE:7:18: snapshot needs the name of an array (syntax: snapshot ARRAY [, ARRAY ...])
    #pragma hmppcg snapshot
                   ^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg snapshot
  for (int i = 0; i < n - 1; i++)
    x[i] = x[i + 1];
}
