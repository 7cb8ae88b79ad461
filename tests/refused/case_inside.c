/* expect:
FILE:8:42: a case inside of another statement of its switch is not accepted
      switch (x[i]) { case 0: if (n > 3) { case 1: x[i] = 1; } x[i] = 2; }
                                           ^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++)
    switch (x[i]) { case 0: if (n > 3) { case 1: x[i] = 1; } x[i] = 2; }
}
