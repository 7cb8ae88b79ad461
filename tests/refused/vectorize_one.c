/* expect:
FILE:7:30: a vector has at least 2 elements: write `vectorize 2` or more
    #pragma looptune vectorize 1
                               ^
*/
void f(int n, double x[n]) {
  #pragma looptune vectorize 1
  for (int i = 0; i < n; i++) x[i] *= 2;
}
