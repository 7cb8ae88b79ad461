/* expect:
FILE:10:3: a goto leads to inside from outside of this block: write a loop or an if instead
    inside:
    ^^^^^^
*/
/* with: --kernel f */
void f(int n, double *x) {
  if (n > 3) goto inside;
  for (int i = 0; i < n; i++) {
  inside:
    x[i] = 1;
  }
}
