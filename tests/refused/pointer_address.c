/* expect:
FILE:9:52: the address of the pointer p is not accepted in a codelet: write the array and an index instead
    for (int i = 0; i < n; i++) p[i] = (double)(long)&p;
                                                     ^^
*/
void g(float **q);
void f(int n, float *a) {
  float *p = a + 1;
  for (int i = 0; i < n; i++) p[i] = (double)(long)&p;
}
