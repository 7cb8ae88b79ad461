/* expect:
FILE:9:15: a computed goto is not supported: write a switch instead
      if (x[i]) goto *p;
                ^^^^
*/
void f(int n, int *x) {
  void *p = n ? &&end : &&end;
  for (int i = 0; i < n; i++) {
    if (x[i]) goto *p;
    x[i] = 1;
  }
end:;
}
