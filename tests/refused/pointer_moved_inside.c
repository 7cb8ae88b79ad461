/* expect:
FILE:8:48: moving p inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) { float t[2] = {*p++, 2}; b[i] = t[0]; }
                                                 ^
*/
void f(int n, float *a, float *b) {
  float *p = a;
  for (int i = 0; i < n; i++) { float t[2] = {*p++, 2}; b[i] = t[0]; }
}
