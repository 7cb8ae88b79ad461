/* expect:
FILE:8:20: argreduce: the bounds of loop i are read from memory, or change in the loop
    #pragma looptune argreduce 8
                     ^^^^^^^^^^^
*/
void f(int n, int a[n], const int many[1], int out[2]) {
  int best = 100;
  #pragma looptune argreduce 8
  for (int i = 0; i < many[0]; i++)
    if (a[i] < best) {
      best = a[i];
      out[0] = i;
    }
  out[1] = best;
}
