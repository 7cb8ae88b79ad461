/* expect:
FILE:8:19: w is a parameter, and a function that is called here uses the w of the file: rename one of them
  void f(int n, int w, int *a) {
                    ^
*/
int w = 5;
static int h(int i) { return w + i; }
void f(int n, int w, int *a) {
  for (int i = 0; i < n; i++) a[i] = h(i) + w;
}
