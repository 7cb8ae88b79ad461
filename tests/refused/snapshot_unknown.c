/* expect:
FILE:7:18: snapshot z: f has no variable z; it has n, x
    #pragma hmppcg snapshot z
                   ^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma hmppcg snapshot z
  for (int i = 0; i < n - 1; i++)
    x[i] = x[i + 1];
}
