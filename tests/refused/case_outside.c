/* expect:
FILE:6:55: a case stands outside of a switch
  void f(int n, int *x) { for (int i = 0; i < n; i++) { case 3: x[i] = 1; } }
                                                        ^^^^
*/
void f(int n, int *x) { for (int i = 0; i < n; i++) { case 3: x[i] = 1; } }
