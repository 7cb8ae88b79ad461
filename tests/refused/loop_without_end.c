/* expect:
FILE:7:24: the loop never ends, as its condition holds for every unsigned int i: write one that ends it, or a counter of another type
    for (unsigned i = n; i >= 0; i--) a[i] = 1;
                         ^^^^^^
*/
void f(unsigned n, int *a) {
  for (unsigned i = n; i >= 0; i--) a[i] = 1;
}
