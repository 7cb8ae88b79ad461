/* expect:
FILE:6:43: the attribute vector_size is not supported: write plain C types
  float four __attribute__((vector_size(16)));
                                            ^
*/
float four __attribute__((vector_size(16)));
void f(int n, float *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] + x[i];
}
