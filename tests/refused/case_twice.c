/* expect:
FILE:10:7: a case of the switch in line 9 has this value too: leave one of them out
        case 1: x[i] = 2;
        ^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++)
    switch (x[i]) {
      case -1 ... 5: x[i] = 1; break;
      case 1: x[i] = 2;
    }
}
