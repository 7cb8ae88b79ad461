/* expect:
FILE:9:3: this loop, which comes from a macro, cannot be a codelet: choose its function
    TWO
    ^^^
*/
/* with: --kernel f:9 */
#define TWO for (int i = 0; i < n; i++) x[i] = 1; for (int i = 0; i < n; i++) x[i] = 2;
void f(int n, double *x, char **names) {
  TWO
  puts(*names);
}
