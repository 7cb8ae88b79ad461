/* expect:
FILE:8:20: rfactor 4 is illegal: loop i carries a dependence: subscript k[i] & 63 of h cannot be analysed, so iterations may depend on each other
    #pragma looptune rfactor 4
                     ^^^^^^^^^
  anti on h: (i=0) reads h[k[i] & 63] 10:15, (i=1) writes h[k[i] & 63] 11:5; assumed, for subscript k[i] & 63 of h 10:17
*/
void f(int n, int k[n], int h[64], int rank[n]) {
  #pragma looptune rfactor 4
  for (int i = 0; i < n; i++) {
    rank[i] = h[k[i] & 63];
    h[k[i] & 63]++;
  }
}
