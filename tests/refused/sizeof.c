/* expect:
FILE:7:38: sizeof is not accepted in a codelet: write the number instead
    for (int i = 0; i < n; i++) x[i] = sizeof(long double);
                                       ^^^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = sizeof(long double);
}
