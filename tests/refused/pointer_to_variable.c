/* expect:
FILE:9:33: p, which may lead to the same memory as s, as this function sets them, is not accepted in a codelet: write one of them and an index instead
    for (int i = 0; i < n; i++) { *p += x[i]; x[i] = s; }
                                  ^^
*/
/* with: --kernel f:9 */
int f(int n, int *x) {
  int s = 0, *p = &s;
  for (int i = 0; i < n; i++) { *p += x[i]; x[i] = s; }
  return s;
}
