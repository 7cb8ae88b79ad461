/* expect:
FILE:9:31: rows, whose rows this function sets to memory that other names may lead to, is not accepted in a codelet: write one array instead
    for (int i = 1; i < n; i++) rows[1][i] = rows[0][i];
                                ^^^^^^^^^^
*/
/* with: --kernel f:9 */
void f(int n, int *x) {
  int *rows[2] = {x, x + 1};
  for (int i = 1; i < n; i++) rows[1][i] = rows[0][i];
}
