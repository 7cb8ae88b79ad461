/* expect:
FILE:7:20: rfactor 4096 of loop i: 4096 copies of h take 4294967296 bytes, more than 1073741824: 1024 parts would fit
    #pragma looptune rfactor 4096
                     ^^^^^^^^^^^^
*/
void f(int n, int k[n], float h[512][512]) {
  #pragma looptune rfactor 4096
  for (int i = 0; i < n; i++)
    h[k[i]][k[i]]++;
}
