/* expect:
FILE:12:20: cut is illegal: t takes a value across it within one iteration of loop i; move the cut, or write t as an array with an element for each i
      #pragma hmppcg cut
                     ^^^
  flow on t: writes t 11:5, reads t 13:12
*/
void f(int n, double A[n], double B[n]) {
  double t;
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++) {
    t = A[i] / 2;
    #pragma hmppcg cut
    B[i] = t * t;
  }
}
