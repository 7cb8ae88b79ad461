/* expect:
FILE:12:20: cut is illegal: t carries a value across the cut in one iteration of loop i; move the cut, or make t an array with an element for each i
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
