/* expect:
FILE:8:20: argreduce needs the iterations of a block (syntax: argreduce ITERATIONS)
    #pragma looptune argreduce
                     ^^^^^^^^^
*/
void f(int n, int a[n], int out[1]) {
  int at = 0;
  #pragma looptune argreduce
  for (int i = 0; i < n; i++)
    if (a[i] > a[at])
      at = i;
  out[0] = at;
}
