/* expect:
FILE:8:38: a pointer as a value is not accepted in a codelet: write the array and an index instead
    for (int i = 0; i < n; i++) b[i] = p - 1;
                                       ^^^^^
*/
void f(int n, float *a, long *b) {
  float *p = a;
  for (int i = 0; i < n; i++) b[i] = p - 1;
}
