/* expect:
FILE:9:22: argreduce: loop j: the number of its blocks would follow from i, which is no parameter that stays the same
      #pragma looptune argreduce 8
                       ^^^^^^^^^^^
*/
void f(int n, const int a[n], int out[n]) {
  for (int i = 0; i < n; i++) {
    int at = i;
    #pragma looptune argreduce 8
    for (int j = i + 1; j < n; j++)
      if (a[j] > a[at])
        at = j;
    out[i] = at;
  }
}
