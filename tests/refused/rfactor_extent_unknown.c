/* expect:
FILE:7:20: rfactor 4 of loop i: each part has a copy of h, whose extent is not declared: declare it, as in h[256]
    #pragma looptune rfactor 4
                     ^^^^^^^^^
*/
void f(int n, int k[n], int *h) {
  #pragma looptune rfactor 4
  for (int i = 0; i < n; i++)
    h[k[i]]++;
}
