/* expect:
FILE:8:45: the address of a label, which is GNU C, is not accepted in a codelet: write a switch instead
    for (int i = 0; i < n; i++) x[i] = (long) &&end;
                                              ^^
*/
/* with: --kernel f:8 */
void f(int n, long *x) {
  for (int i = 0; i < n; i++) x[i] = (long) &&end;
end:;
}
