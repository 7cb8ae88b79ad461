/* expect:
FILE:9:18: parallel is illegal: loop i reduces s by + and also uses it in another way
    #pragma hmppcg parallel
                   ^^^^^^^^
  instead: loop 2 (j) is parallel
  instead: it is legal after `distribute`
*/
void f(int n, double x[n], double y[n], double s[n + 2]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) {
    for (int j = i; j < i + 2; j++) s[j] += x[i];
    if (i == 0) y[0] = s[0];
  }
}
