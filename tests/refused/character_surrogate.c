/* expect:
FILE:7:38: 0xd800 is not a character
    for (int i = 0; i < n; i++) x[i] = u'\uD800';
                                       ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = u'\uD800';
}
