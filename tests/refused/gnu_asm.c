/* expect:
FILE:7:33: inline assembly is not supported: write C instead
    for (int i = 0; i < n; i++) { __asm__ volatile ("nop" : : ); x[i] = 1; }
                                  ^^^^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) { __asm__ volatile ("nop" : : ); x[i] = 1; }
}
