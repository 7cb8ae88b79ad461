/* expect:
FILE:7:20: argreduce: loop i keeps no best term, and no first or last match
    #pragma looptune argreduce 8
                     ^^^^^^^^^^^
*/
void f(int n, int a[n], int out[n]) {
  #pragma looptune argreduce 8
  for (int i = 0; i < n; i++)
    if (a[i] > out[0])
      out[0] = a[i] / 2;
}
