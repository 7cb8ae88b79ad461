/* expect:
FILE:6:49: the attribute vector_size is not supported: write plain C types
  typedef float v4 __attribute__((vector_size(16)));
                                                  ^
*/
typedef float v4 __attribute__((vector_size(16)));
void f(int n, v4 *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] + x[i];
}
