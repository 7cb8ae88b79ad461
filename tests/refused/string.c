/* expect:
FILE:7:38: a string is not accepted in a codelet: write numbers instead
    for (int i = 0; i < n; i++) x[i] = "abc"[i];
                                       ^^^^^
*/
void f(int n, char *x) {
  for (int i = 0; i < n; i++) x[i] = "abc"[i];
}
