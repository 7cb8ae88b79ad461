/* expect:
FILE:7:18: box 4: loop i has the step 3; `box` alone is for any
    #pragma hmppcg box 4
                   ^^^^^
*/
void f(int n, double A[n]) {
  #pragma hmppcg box 4
  for (int i = 0; i < n; i += 3) A[i] = 1;
}
