/* expect:
FILE:9:5: memcpy of the bits of float32 to uint32 is not accepted in a codelet: write arithmetic on one type instead
      memcpy(&bits, &x[i], sizeof bits);
      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, const float *x, unsigned *restrict y) {
  for (int i = 0; i < n; i++) {
    unsigned bits;
    memcpy(&bits, &x[i], sizeof bits);
    y[i] = bits >> 23;
  }
}
