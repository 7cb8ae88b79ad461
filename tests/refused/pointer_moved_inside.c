/* expect:
FILE:8:50: moving p inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) b[i] = b[i] > 0 ? *p++ : 2;
                                                   ^
*/
void f(int n, float *a, float *b) {
  float *p = a;
  for (int i = 0; i < n; i++) b[i] = b[i] > 0 ? *p++ : 2;
}
