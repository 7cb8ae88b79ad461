/* expect:
FILE:7:20: this initialiser of c is not accepted in a codelet: write a list in braces instead
    const char c[] = "\x41b";
                     ^^^^^^^
*/
void f(int n, int *a) {
  const char c[] = "\x41b";
  for (int i = 0; i < n; i++) a[i] = c[i % 3];
}
