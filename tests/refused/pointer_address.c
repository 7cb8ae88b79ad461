/* expect:
FILE:7:27: the address of the pointer p is not accepted in a codelet: write the array and an index instead
    float *p = a + 1, **q = &p;
                            ^^
*/
void f(int n, float *a) {
  float *p = a + 1, **q = &p;
  for (int i = 0; i < n; i++) (*q)[i] = p[i];
}
